"""Types of lf.a2a.v1. Made by proto/generate.py; do not edit."""

from a2a_stubs import descriptors as _descriptors

DESCRIPTOR = _descriptors.pool.FindFileByName("lf/a2a/v1/a2a.proto")
TaskState = _descriptors.enum("lf.a2a.v1.TaskState")
TASK_STATE_UNSPECIFIED = 0
TASK_STATE_SUBMITTED = 1
TASK_STATE_WORKING = 2
TASK_STATE_COMPLETED = 3
TASK_STATE_FAILED = 4
TASK_STATE_CANCELED = 5
TASK_STATE_INPUT_REQUIRED = 6
TASK_STATE_REJECTED = 7
TASK_STATE_AUTH_REQUIRED = 8
Role = _descriptors.enum("lf.a2a.v1.Role")
ROLE_UNSPECIFIED = 0
ROLE_USER = 1
ROLE_AGENT = 2
SendMessageConfiguration = _descriptors.message("lf.a2a.v1.SendMessageConfiguration", __name__)
Task = _descriptors.message("lf.a2a.v1.Task", __name__)
TaskStatus = _descriptors.message("lf.a2a.v1.TaskStatus", __name__)
Part = _descriptors.message("lf.a2a.v1.Part", __name__)
Message = _descriptors.message("lf.a2a.v1.Message", __name__)
Artifact = _descriptors.message("lf.a2a.v1.Artifact", __name__)
TaskStatusUpdateEvent = _descriptors.message("lf.a2a.v1.TaskStatusUpdateEvent", __name__)
TaskArtifactUpdateEvent = _descriptors.message("lf.a2a.v1.TaskArtifactUpdateEvent", __name__)
AuthenticationInfo = _descriptors.message("lf.a2a.v1.AuthenticationInfo", __name__)
AgentInterface = _descriptors.message("lf.a2a.v1.AgentInterface", __name__)
AgentCard = _descriptors.message("lf.a2a.v1.AgentCard", __name__)
AgentProvider = _descriptors.message("lf.a2a.v1.AgentProvider", __name__)
AgentCapabilities = _descriptors.message("lf.a2a.v1.AgentCapabilities", __name__)
AgentExtension = _descriptors.message("lf.a2a.v1.AgentExtension", __name__)
AgentSkill = _descriptors.message("lf.a2a.v1.AgentSkill", __name__)
AgentCardSignature = _descriptors.message("lf.a2a.v1.AgentCardSignature", __name__)
TaskPushNotificationConfig = _descriptors.message("lf.a2a.v1.TaskPushNotificationConfig", __name__)
StringList = _descriptors.message("lf.a2a.v1.StringList", __name__)
SecurityRequirement = _descriptors.message("lf.a2a.v1.SecurityRequirement", __name__)
SecurityScheme = _descriptors.message("lf.a2a.v1.SecurityScheme", __name__)
APIKeySecurityScheme = _descriptors.message("lf.a2a.v1.APIKeySecurityScheme", __name__)
HTTPAuthSecurityScheme = _descriptors.message("lf.a2a.v1.HTTPAuthSecurityScheme", __name__)
OAuth2SecurityScheme = _descriptors.message("lf.a2a.v1.OAuth2SecurityScheme", __name__)
OpenIdConnectSecurityScheme = _descriptors.message("lf.a2a.v1.OpenIdConnectSecurityScheme", __name__)
MutualTlsSecurityScheme = _descriptors.message("lf.a2a.v1.MutualTlsSecurityScheme", __name__)
OAuthFlows = _descriptors.message("lf.a2a.v1.OAuthFlows", __name__)
AuthorizationCodeOAuthFlow = _descriptors.message("lf.a2a.v1.AuthorizationCodeOAuthFlow", __name__)
ClientCredentialsOAuthFlow = _descriptors.message("lf.a2a.v1.ClientCredentialsOAuthFlow", __name__)
ImplicitOAuthFlow = _descriptors.message("lf.a2a.v1.ImplicitOAuthFlow", __name__)
PasswordOAuthFlow = _descriptors.message("lf.a2a.v1.PasswordOAuthFlow", __name__)
DeviceCodeOAuthFlow = _descriptors.message("lf.a2a.v1.DeviceCodeOAuthFlow", __name__)
SendMessageRequest = _descriptors.message("lf.a2a.v1.SendMessageRequest", __name__)
GetTaskRequest = _descriptors.message("lf.a2a.v1.GetTaskRequest", __name__)
ListTasksRequest = _descriptors.message("lf.a2a.v1.ListTasksRequest", __name__)
ListTasksResponse = _descriptors.message("lf.a2a.v1.ListTasksResponse", __name__)
CancelTaskRequest = _descriptors.message("lf.a2a.v1.CancelTaskRequest", __name__)
GetTaskPushNotificationConfigRequest = _descriptors.message("lf.a2a.v1.GetTaskPushNotificationConfigRequest", __name__)
DeleteTaskPushNotificationConfigRequest = _descriptors.message("lf.a2a.v1.DeleteTaskPushNotificationConfigRequest", __name__)
SubscribeToTaskRequest = _descriptors.message("lf.a2a.v1.SubscribeToTaskRequest", __name__)
ListTaskPushNotificationConfigsRequest = _descriptors.message("lf.a2a.v1.ListTaskPushNotificationConfigsRequest", __name__)
GetExtendedAgentCardRequest = _descriptors.message("lf.a2a.v1.GetExtendedAgentCardRequest", __name__)
SendMessageResponse = _descriptors.message("lf.a2a.v1.SendMessageResponse", __name__)
StreamResponse = _descriptors.message("lf.a2a.v1.StreamResponse", __name__)
ListTaskPushNotificationConfigsResponse = _descriptors.message("lf.a2a.v1.ListTaskPushNotificationConfigsResponse", __name__)

REQUIRED = {
    "lf.a2a.v1.Task": ('id', 'status'),
    "lf.a2a.v1.TaskStatus": ('state',),
    "lf.a2a.v1.Message": ('message_id', 'role', 'parts'),
    "lf.a2a.v1.Artifact": ('artifact_id', 'parts'),
    "lf.a2a.v1.TaskStatusUpdateEvent": ('task_id', 'context_id', 'status'),
    "lf.a2a.v1.TaskArtifactUpdateEvent": ('task_id', 'context_id', 'artifact'),
    "lf.a2a.v1.AuthenticationInfo": ('scheme',),
    "lf.a2a.v1.AgentInterface": ('url', 'protocol_binding', 'protocol_version'),
    "lf.a2a.v1.AgentCard": ('name', 'description', 'supported_interfaces', 'version', 'capabilities', 'default_input_modes', 'default_output_modes', 'skills'),
    "lf.a2a.v1.AgentProvider": ('url', 'organization'),
    "lf.a2a.v1.AgentSkill": ('id', 'name', 'description', 'tags'),
    "lf.a2a.v1.AgentCardSignature": ('protected', 'signature'),
    "lf.a2a.v1.TaskPushNotificationConfig": ('url',),
    "lf.a2a.v1.APIKeySecurityScheme": ('location', 'name'),
    "lf.a2a.v1.HTTPAuthSecurityScheme": ('scheme',),
    "lf.a2a.v1.OAuth2SecurityScheme": ('flows',),
    "lf.a2a.v1.OpenIdConnectSecurityScheme": ('open_id_connect_url',),
    "lf.a2a.v1.AuthorizationCodeOAuthFlow": ('authorization_url', 'token_url', 'scopes'),
    "lf.a2a.v1.ClientCredentialsOAuthFlow": ('token_url', 'scopes'),
    "lf.a2a.v1.DeviceCodeOAuthFlow": ('device_authorization_url', 'token_url', 'scopes'),
    "lf.a2a.v1.SendMessageRequest": ('message',),
    "lf.a2a.v1.GetTaskRequest": ('id',),
    "lf.a2a.v1.ListTasksResponse": ('tasks', 'next_page_token', 'page_size', 'total_size'),
    "lf.a2a.v1.CancelTaskRequest": ('id',),
    "lf.a2a.v1.GetTaskPushNotificationConfigRequest": ('task_id', 'id'),
    "lf.a2a.v1.DeleteTaskPushNotificationConfigRequest": ('task_id', 'id'),
    "lf.a2a.v1.SubscribeToTaskRequest": ('id',),
    "lf.a2a.v1.ListTaskPushNotificationConfigsRequest": ('task_id',),
}
