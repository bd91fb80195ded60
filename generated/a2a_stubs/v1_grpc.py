"""Types of lf.a2a.v1. Service for grpcio. Made by proto/generate.py; do not edit."""

from a2a_stubs import descriptors as _descriptors, google as _google, v1 as _v1

SERVICE = "lf.a2a.v1.A2AService"

METHODS = (
    _descriptors.Method("SendMessage", "/lf.a2a.v1.A2AService/SendMessage", _v1.SendMessageRequest, _v1.SendMessageResponse, False),
    _descriptors.Method("SendStreamingMessage", "/lf.a2a.v1.A2AService/SendStreamingMessage", _v1.SendMessageRequest, _v1.StreamResponse, True),
    _descriptors.Method("GetTask", "/lf.a2a.v1.A2AService/GetTask", _v1.GetTaskRequest, _v1.Task, False),
    _descriptors.Method("ListTasks", "/lf.a2a.v1.A2AService/ListTasks", _v1.ListTasksRequest, _v1.ListTasksResponse, False),
    _descriptors.Method("CancelTask", "/lf.a2a.v1.A2AService/CancelTask", _v1.CancelTaskRequest, _v1.Task, False),
    _descriptors.Method("SubscribeToTask", "/lf.a2a.v1.A2AService/SubscribeToTask", _v1.SubscribeToTaskRequest, _v1.StreamResponse, True),
    _descriptors.Method("CreateTaskPushNotificationConfig", "/lf.a2a.v1.A2AService/CreateTaskPushNotificationConfig", _v1.TaskPushNotificationConfig, _v1.TaskPushNotificationConfig, False),
    _descriptors.Method("GetTaskPushNotificationConfig", "/lf.a2a.v1.A2AService/GetTaskPushNotificationConfig", _v1.GetTaskPushNotificationConfigRequest, _v1.TaskPushNotificationConfig, False),
    _descriptors.Method("ListTaskPushNotificationConfigs", "/lf.a2a.v1.A2AService/ListTaskPushNotificationConfigs", _v1.ListTaskPushNotificationConfigsRequest, _v1.ListTaskPushNotificationConfigsResponse, False),
    _descriptors.Method("GetExtendedAgentCard", "/lf.a2a.v1.A2AService/GetExtendedAgentCard", _v1.GetExtendedAgentCardRequest, _v1.AgentCard, False),
    _descriptors.Method("DeleteTaskPushNotificationConfig", "/lf.a2a.v1.A2AService/DeleteTaskPushNotificationConfig", _v1.DeleteTaskPushNotificationConfigRequest, _google.Empty, False),
)

HTTP_RULES = {
    "SendMessage": (
        ('POST', '/message:send', '*'),
        ('POST', '/{tenant}/message:send', '*'),
    ),
    "SendStreamingMessage": (
        ('POST', '/message:stream', '*'),
        ('POST', '/{tenant}/message:stream', '*'),
    ),
    "GetTask": (
        ('GET', '/tasks/{id=*}', None),
        ('GET', '/{tenant}/tasks/{id=*}', None),
    ),
    "ListTasks": (
        ('GET', '/tasks', None),
        ('GET', '/{tenant}/tasks', None),
    ),
    "CancelTask": (
        ('POST', '/tasks/{id=*}:cancel', '*'),
        ('POST', '/{tenant}/tasks/{id=*}:cancel', '*'),
    ),
    "SubscribeToTask": (
        ('GET', '/tasks/{id=*}:subscribe', None),
        ('GET', '/{tenant}/tasks/{id=*}:subscribe', None),
    ),
    "CreateTaskPushNotificationConfig": (
        ('POST', '/tasks/{task_id=*}/pushNotificationConfigs', '*'),
        ('POST', '/{tenant}/tasks/{task_id=*}/pushNotificationConfigs', '*'),
    ),
    "GetTaskPushNotificationConfig": (
        ('GET', '/tasks/{task_id=*}/pushNotificationConfigs/{id=*}', None),
        ('GET', '/{tenant}/tasks/{task_id=*}/pushNotificationConfigs/{id=*}', None),
    ),
    "ListTaskPushNotificationConfigs": (
        ('GET', '/tasks/{task_id=*}/pushNotificationConfigs', None),
        ('GET', '/{tenant}/tasks/{task_id=*}/pushNotificationConfigs', None),
    ),
    "GetExtendedAgentCard": (
        ('GET', '/extendedAgentCard', None),
        ('GET', '/{tenant}/extendedAgentCard', None),
    ),
    "DeleteTaskPushNotificationConfig": (
        ('DELETE', '/tasks/{task_id=*}/pushNotificationConfigs/{id=*}', None),
        ('DELETE', '/{tenant}/tasks/{task_id=*}/pushNotificationConfigs/{id=*}', None),
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

    async def ListTasks(self, request, context):
        await _descriptors.unimplemented(context)

    async def CancelTask(self, request, context):
        await _descriptors.unimplemented(context)

    async def SubscribeToTask(self, request, context):
        await _descriptors.unimplemented(context)
        yield

    async def CreateTaskPushNotificationConfig(self, request, context):
        await _descriptors.unimplemented(context)

    async def GetTaskPushNotificationConfig(self, request, context):
        await _descriptors.unimplemented(context)

    async def ListTaskPushNotificationConfigs(self, request, context):
        await _descriptors.unimplemented(context)

    async def GetExtendedAgentCard(self, request, context):
        await _descriptors.unimplemented(context)

    async def DeleteTaskPushNotificationConfig(self, request, context):
        await _descriptors.unimplemented(context)


class A2AServiceStub:
    def __init__(self, channel):
        _descriptors.bind(self, channel, METHODS)


def add_A2AServiceServicer_to_server(servicer, server):
    _descriptors.register(servicer, server, SERVICE, METHODS)
