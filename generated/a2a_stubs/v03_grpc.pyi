"""Types of a2a.v1. Service for grpcio. Made by proto/generate.py; do not edit."""

import collections.abc as _abc
import typing as _t

from a2a_stubs import descriptors as _descriptors, google as _google, v03 as _v03

SERVICE: str
METHODS: tuple[_descriptors.Method, ...]
HTTP_RULES: dict[str, tuple[tuple[str, str, str | None], ...]]

class A2AServiceServicer:
    """The operations of an agent."""
    async def SendMessage(self, request: _v03.SendMessageRequest, context: _t.Any) -> _v03.SendMessageResponse:
        """Sends a message and answers once: with a direct message, or with a task that is done, waits for
        the caller, or (when asked for) has only begun.
        """
    def SendStreamingMessage(self, request: _v03.SendMessageRequest, context: _t.Any) -> _abc.AsyncIterator[_v03.StreamResponse]:
        """Sends a message and streams what follows as it happens. Needs the streaming capability."""
    async def GetTask(self, request: _v03.GetTaskRequest, context: _t.Any) -> _v03.Task:
        """Gives a task as it stands now."""
    async def CancelTask(self, request: _v03.CancelTaskRequest, context: _t.Any) -> _v03.Task:
        """Stops a task that has not ended and gives it back as it then stands."""
    def TaskSubscription(self, request: _v03.TaskSubscriptionRequest, context: _t.Any) -> _abc.AsyncIterator[_v03.StreamResponse]:
        """Follows a task again after a stream was lost: the task as it stands, then its updates."""
    async def CreateTaskPushNotificationConfig(self, request: _v03.CreateTaskPushNotificationConfigRequest, context: _t.Any) -> _v03.TaskPushNotificationConfig:
        """Adds a webhook to a task, or replaces the one of the same id. Needs the push notification
        capability. The first route is misspelt in release 0.3.0 and kept for it; the second is the one
        in use.
        """
    async def GetTaskPushNotificationConfig(self, request: _v03.GetTaskPushNotificationConfigRequest, context: _t.Any) -> _v03.TaskPushNotificationConfig:
        """Gives one webhook of a task."""
    async def ListTaskPushNotificationConfig(self, request: _v03.ListTaskPushNotificationConfigRequest, context: _t.Any) -> _v03.ListTaskPushNotificationConfigResponse:
        """Lists the webhooks of a task."""
    async def GetAgentCard(self, request: _v03.GetAgentCardRequest, context: _t.Any) -> _v03.AgentCard:
        """Gives the fuller card that authenticated callers may see."""
    async def DeleteTaskPushNotificationConfig(self, request: _v03.DeleteTaskPushNotificationConfigRequest, context: _t.Any) -> _google.Empty:
        """Takes a webhook off a task."""

class A2AServiceStub:
    def __init__(self, channel: _t.Any) -> None: ...
    SendMessage: _descriptors.UnaryUnary[_v03.SendMessageRequest, _v03.SendMessageResponse]
    SendStreamingMessage: _descriptors.UnaryStream[_v03.SendMessageRequest, _v03.StreamResponse]
    GetTask: _descriptors.UnaryUnary[_v03.GetTaskRequest, _v03.Task]
    CancelTask: _descriptors.UnaryUnary[_v03.CancelTaskRequest, _v03.Task]
    TaskSubscription: _descriptors.UnaryStream[_v03.TaskSubscriptionRequest, _v03.StreamResponse]
    CreateTaskPushNotificationConfig: _descriptors.UnaryUnary[_v03.CreateTaskPushNotificationConfigRequest, _v03.TaskPushNotificationConfig]
    GetTaskPushNotificationConfig: _descriptors.UnaryUnary[_v03.GetTaskPushNotificationConfigRequest, _v03.TaskPushNotificationConfig]
    ListTaskPushNotificationConfig: _descriptors.UnaryUnary[_v03.ListTaskPushNotificationConfigRequest, _v03.ListTaskPushNotificationConfigResponse]
    GetAgentCard: _descriptors.UnaryUnary[_v03.GetAgentCardRequest, _v03.AgentCard]
    DeleteTaskPushNotificationConfig: _descriptors.UnaryUnary[_v03.DeleteTaskPushNotificationConfigRequest, _google.Empty]

def add_A2AServiceServicer_to_server(
    servicer: A2AServiceServicer, server: _t.Any
) -> None: ...
