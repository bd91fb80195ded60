"""Types of a2a.v1. Service for grpcio. Made by proto/generate.py; do not edit."""

from a2a_stubs import descriptors as _descriptors, google as _google, v03 as _v03

SERVICE = "a2a.v1.A2AService"

METHODS = (
    _descriptors.Method("SendMessage", "/a2a.v1.A2AService/SendMessage", _v03.SendMessageRequest, _v03.SendMessageResponse, False),
    _descriptors.Method("SendStreamingMessage", "/a2a.v1.A2AService/SendStreamingMessage", _v03.SendMessageRequest, _v03.StreamResponse, True),
    _descriptors.Method("GetTask", "/a2a.v1.A2AService/GetTask", _v03.GetTaskRequest, _v03.Task, False),
    _descriptors.Method("CancelTask", "/a2a.v1.A2AService/CancelTask", _v03.CancelTaskRequest, _v03.Task, False),
    _descriptors.Method("TaskSubscription", "/a2a.v1.A2AService/TaskSubscription", _v03.TaskSubscriptionRequest, _v03.StreamResponse, True),
    _descriptors.Method("CreateTaskPushNotificationConfig", "/a2a.v1.A2AService/CreateTaskPushNotificationConfig", _v03.CreateTaskPushNotificationConfigRequest, _v03.TaskPushNotificationConfig, False),
    _descriptors.Method("GetTaskPushNotificationConfig", "/a2a.v1.A2AService/GetTaskPushNotificationConfig", _v03.GetTaskPushNotificationConfigRequest, _v03.TaskPushNotificationConfig, False),
    _descriptors.Method("ListTaskPushNotificationConfig", "/a2a.v1.A2AService/ListTaskPushNotificationConfig", _v03.ListTaskPushNotificationConfigRequest, _v03.ListTaskPushNotificationConfigResponse, False),
    _descriptors.Method("GetAgentCard", "/a2a.v1.A2AService/GetAgentCard", _v03.GetAgentCardRequest, _v03.AgentCard, False),
    _descriptors.Method("DeleteTaskPushNotificationConfig", "/a2a.v1.A2AService/DeleteTaskPushNotificationConfig", _v03.DeleteTaskPushNotificationConfigRequest, _google.Empty, False),
)

HTTP_RULES = {
    "SendMessage": (
        ('POST', '/v1/message:send', '*'),
    ),
    "SendStreamingMessage": (
        ('POST', '/v1/message:stream', '*'),
    ),
    "GetTask": (
        ('GET', '/v1/{name=tasks/*}', None),
    ),
    "CancelTask": (
        ('POST', '/v1/{name=tasks/*}:cancel', '*'),
    ),
    "TaskSubscription": (
        ('GET', '/v1/{name=tasks/*}:subscribe', None),
    ),
    "CreateTaskPushNotificationConfig": (
        ('POST', '/v1/{parent=task/*/pushNotificationConfigs}', 'config'),
        ('POST', '/v1/{parent=tasks/*}/pushNotificationConfigs', 'config'),
    ),
    "GetTaskPushNotificationConfig": (
        ('GET', '/v1/{name=tasks/*/pushNotificationConfigs/*}', None),
    ),
    "ListTaskPushNotificationConfig": (
        ('GET', '/v1/{parent=tasks/*}/pushNotificationConfigs', None),
    ),
    "GetAgentCard": (
        ('GET', '/v1/card', None),
    ),
    "DeleteTaskPushNotificationConfig": (
        ('DELETE', '/v1/{name=tasks/*/pushNotificationConfigs/*}', None),
    ),
}


class A2AServiceServicer:
    async def SendMessage(self, request, context):
        await _descriptors.unimplemented(context)

    async def SendStreamingMessage(self, request, context):
        await _descriptors.unimplemented(context)
        yield

    async def GetTask(self, request, context):
        await _descriptors.unimplemented(context)

    async def CancelTask(self, request, context):
        await _descriptors.unimplemented(context)

    async def TaskSubscription(self, request, context):
        await _descriptors.unimplemented(context)
        yield

    async def CreateTaskPushNotificationConfig(self, request, context):
        await _descriptors.unimplemented(context)

    async def GetTaskPushNotificationConfig(self, request, context):
        await _descriptors.unimplemented(context)

    async def ListTaskPushNotificationConfig(self, request, context):
        await _descriptors.unimplemented(context)

    async def GetAgentCard(self, request, context):
        await _descriptors.unimplemented(context)

    async def DeleteTaskPushNotificationConfig(self, request, context):
        await _descriptors.unimplemented(context)


class A2AServiceStub:
    def __init__(self, channel):
        _descriptors.bind(self, channel, METHODS)


def add_A2AServiceServicer_to_server(servicer, server):
    _descriptors.register(servicer, server, SERVICE, METHODS)
