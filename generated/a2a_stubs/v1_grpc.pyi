"""Types of lf.a2a.v1. Service for grpcio. Made by proto/generate.py; do not edit."""

import collections.abc as _abc
import typing as _t

from a2a_stubs import descriptors as _descriptors, google as _google, v1 as _v1

SERVICE: str
METHODS: tuple[_descriptors.Method, ...]
HTTP_RULES: dict[str, tuple[tuple[str, str, str | None], ...]]

class A2AServiceServicer:
    """The operations of an agent."""
    async def SendMessage(self, request: _v1.SendMessageRequest, context: _t.Any) -> _v1.SendMessageResponse:
        """Sends a message and answers once: with a direct message, or with a task that is done, waits for
        the caller, or (when asked for) has only begun.
        """
    def SendStreamingMessage(self, request: _v1.SendMessageRequest, context: _t.Any) -> _abc.AsyncIterator[_v1.StreamResponse]:
        """Sends a message and streams what follows as it happens. Needs the streaming capability."""
    async def GetTask(self, request: _v1.GetTaskRequest, context: _t.Any) -> _v1.Task:
        """Gives a task as it stands now."""
    async def ListTasks(self, request: _v1.ListTasksRequest, context: _t.Any) -> _v1.ListTasksResponse:
        """Lists the tasks that the caller may see, a page at a time, the newest status first."""
    async def CancelTask(self, request: _v1.CancelTaskRequest, context: _t.Any) -> _v1.Task:
        """Stops a task that has not ended and gives it back as it then stands."""
    def SubscribeToTask(self, request: _v1.SubscribeToTaskRequest, context: _t.Any) -> _abc.AsyncIterator[_v1.StreamResponse]:
        """Follows a task that has not ended: first the task as it stands, then its updates."""
    async def CreateTaskPushNotificationConfig(self, request: _v1.TaskPushNotificationConfig, context: _t.Any) -> _v1.TaskPushNotificationConfig:
        """Adds a webhook to a task. Needs the push notification capability."""
    async def GetTaskPushNotificationConfig(self, request: _v1.GetTaskPushNotificationConfigRequest, context: _t.Any) -> _v1.TaskPushNotificationConfig:
        """Gives one webhook of a task."""
    async def ListTaskPushNotificationConfigs(self, request: _v1.ListTaskPushNotificationConfigsRequest, context: _t.Any) -> _v1.ListTaskPushNotificationConfigsResponse:
        """Lists the webhooks of a task."""
    async def GetExtendedAgentCard(self, request: _v1.GetExtendedAgentCardRequest, context: _t.Any) -> _v1.AgentCard:
        """Gives the fuller card that authenticated callers may see."""
    async def DeleteTaskPushNotificationConfig(self, request: _v1.DeleteTaskPushNotificationConfigRequest, context: _t.Any) -> _google.Empty:
        """Takes a webhook off a task."""

class A2AServiceStub:
    def __init__(self, channel: _t.Any) -> None: ...
    SendMessage: _descriptors.UnaryUnary[_v1.SendMessageRequest, _v1.SendMessageResponse]
    SendStreamingMessage: _descriptors.UnaryStream[_v1.SendMessageRequest, _v1.StreamResponse]
    GetTask: _descriptors.UnaryUnary[_v1.GetTaskRequest, _v1.Task]
    ListTasks: _descriptors.UnaryUnary[_v1.ListTasksRequest, _v1.ListTasksResponse]
    CancelTask: _descriptors.UnaryUnary[_v1.CancelTaskRequest, _v1.Task]
    SubscribeToTask: _descriptors.UnaryStream[_v1.SubscribeToTaskRequest, _v1.StreamResponse]
    CreateTaskPushNotificationConfig: _descriptors.UnaryUnary[_v1.TaskPushNotificationConfig, _v1.TaskPushNotificationConfig]
    GetTaskPushNotificationConfig: _descriptors.UnaryUnary[_v1.GetTaskPushNotificationConfigRequest, _v1.TaskPushNotificationConfig]
    ListTaskPushNotificationConfigs: _descriptors.UnaryUnary[_v1.ListTaskPushNotificationConfigsRequest, _v1.ListTaskPushNotificationConfigsResponse]
    GetExtendedAgentCard: _descriptors.UnaryUnary[_v1.GetExtendedAgentCardRequest, _v1.AgentCard]
    DeleteTaskPushNotificationConfig: _descriptors.UnaryUnary[_v1.DeleteTaskPushNotificationConfigRequest, _google.Empty]

def add_A2AServiceServicer_to_server(
    servicer: A2AServiceServicer, server: _t.Any
) -> None: ...
