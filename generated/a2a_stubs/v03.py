"""Types of a2a.v1. Made by proto/generate.py; do not edit."""

from a2a_stubs import descriptors as _descriptors

DESCRIPTOR = _descriptors.pool.FindFileByName("a2a/v1/a2a.proto")
TaskState = _descriptors.enum("a2a.v1.TaskState")
TASK_STATE_UNSPECIFIED = 0
TASK_STATE_SUBMITTED = 1
TASK_STATE_WORKING = 2
TASK_STATE_COMPLETED = 3
TASK_STATE_FAILED = 4
TASK_STATE_CANCELLED = 5
TASK_STATE_INPUT_REQUIRED = 6
TASK_STATE_REJECTED = 7
TASK_STATE_AUTH_REQUIRED = 8
Role = _descriptors.enum("a2a.v1.Role")
ROLE_UNSPECIFIED = 0
ROLE_USER = 1
ROLE_AGENT = 2
SendMessageConfiguration = _descriptors.message("a2a.v1.SendMessageConfiguration", __name__)
Task = _descriptors.message("a2a.v1.Task", __name__)
TaskStatus = _descriptors.message("a2a.v1.TaskStatus", __name__)
Part = _descriptors.message("a2a.v1.Part", __name__)
FilePart = _descriptors.message("a2a.v1.FilePart", __name__)
DataPart = _descriptors.message("a2a.v1.DataPart", __name__)
Message = _descriptors.message("a2a.v1.Message", __name__)
Artifact = _descriptors.message("a2a.v1.Artifact", __name__)
TaskStatusUpdateEvent = _descriptors.message("a2a.v1.TaskStatusUpdateEvent", __name__)
TaskArtifactUpdateEvent = _descriptors.message("a2a.v1.TaskArtifactUpdateEvent", __name__)
PushNotificationConfig = _descriptors.message("a2a.v1.PushNotificationConfig", __name__)
AuthenticationInfo = _descriptors.message("a2a.v1.AuthenticationInfo", __name__)
AgentInterface = _descriptors.message("a2a.v1.AgentInterface", __name__)
AgentCard = _descriptors.message("a2a.v1.AgentCard", __name__)
AgentProvider = _descriptors.message("a2a.v1.AgentProvider", __name__)
AgentCapabilities = _descriptors.message("a2a.v1.AgentCapabilities", __name__)
AgentExtension = _descriptors.message("a2a.v1.AgentExtension", __name__)
AgentSkill = _descriptors.message("a2a.v1.AgentSkill", __name__)
AgentCardSignature = _descriptors.message("a2a.v1.AgentCardSignature", __name__)
TaskPushNotificationConfig = _descriptors.message("a2a.v1.TaskPushNotificationConfig", __name__)
StringList = _descriptors.message("a2a.v1.StringList", __name__)
Security = _descriptors.message("a2a.v1.Security", __name__)
SecurityScheme = _descriptors.message("a2a.v1.SecurityScheme", __name__)
APIKeySecurityScheme = _descriptors.message("a2a.v1.APIKeySecurityScheme", __name__)
HTTPAuthSecurityScheme = _descriptors.message("a2a.v1.HTTPAuthSecurityScheme", __name__)
OAuth2SecurityScheme = _descriptors.message("a2a.v1.OAuth2SecurityScheme", __name__)
OpenIdConnectSecurityScheme = _descriptors.message("a2a.v1.OpenIdConnectSecurityScheme", __name__)
MutualTlsSecurityScheme = _descriptors.message("a2a.v1.MutualTlsSecurityScheme", __name__)
OAuthFlows = _descriptors.message("a2a.v1.OAuthFlows", __name__)
AuthorizationCodeOAuthFlow = _descriptors.message("a2a.v1.AuthorizationCodeOAuthFlow", __name__)
ClientCredentialsOAuthFlow = _descriptors.message("a2a.v1.ClientCredentialsOAuthFlow", __name__)
ImplicitOAuthFlow = _descriptors.message("a2a.v1.ImplicitOAuthFlow", __name__)
PasswordOAuthFlow = _descriptors.message("a2a.v1.PasswordOAuthFlow", __name__)
SendMessageRequest = _descriptors.message("a2a.v1.SendMessageRequest", __name__)
GetTaskRequest = _descriptors.message("a2a.v1.GetTaskRequest", __name__)
CancelTaskRequest = _descriptors.message("a2a.v1.CancelTaskRequest", __name__)
GetTaskPushNotificationConfigRequest = _descriptors.message("a2a.v1.GetTaskPushNotificationConfigRequest", __name__)
DeleteTaskPushNotificationConfigRequest = _descriptors.message("a2a.v1.DeleteTaskPushNotificationConfigRequest", __name__)
CreateTaskPushNotificationConfigRequest = _descriptors.message("a2a.v1.CreateTaskPushNotificationConfigRequest", __name__)
TaskSubscriptionRequest = _descriptors.message("a2a.v1.TaskSubscriptionRequest", __name__)
ListTaskPushNotificationConfigRequest = _descriptors.message("a2a.v1.ListTaskPushNotificationConfigRequest", __name__)
GetAgentCardRequest = _descriptors.message("a2a.v1.GetAgentCardRequest", __name__)
SendMessageResponse = _descriptors.message("a2a.v1.SendMessageResponse", __name__)
StreamResponse = _descriptors.message("a2a.v1.StreamResponse", __name__)
ListTaskPushNotificationConfigResponse = _descriptors.message("a2a.v1.ListTaskPushNotificationConfigResponse", __name__)

REQUIRED = {
    "a2a.v1.AgentCardSignature": ('protected', 'signature'),
    "a2a.v1.SendMessageRequest": ('request',),
    "a2a.v1.GetTaskRequest": ('name',),
    "a2a.v1.CreateTaskPushNotificationConfigRequest": ('parent', 'config_id', 'config'),
}
