import com.google.protobuf.Struct;
import com.google.protobuf.Value;
import com.google.rpc.ErrorInfo;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * Calls an agent through stubs that the stock Java tools made from the protos of this project.
 * Usage: Main HOST:PORT. Prints one JSON line a step.
 */
public final class Main {
    private static void show(String step, Object... facts) {
        StringBuilder line = new StringBuilder("{\"step\":\"" + step + "\"");
        for (int i = 0; i < facts.length; i += 2) {
            Object value = facts[i + 1];
            line.append(",\"").append(facts[i]).append("\":");
            line.append(value instanceof String ? "\"" + value + "\"" : String.valueOf(value));
        }
        System.out.println(line.append("}"));
    }

    private static void showError(String step, Runnable call) throws Exception {
        try {
            call.run();
            throw new AssertionError(step + " was no error");
        } catch (StatusRuntimeException fault) {
            ErrorInfo info = StatusProto.fromThrowable(fault).getDetails(0).unpack(ErrorInfo.class);
            int code = fault.getStatus().getCode().value();
            show(step, "status", code, "reason", info.getReason(), "domain", info.getDomain());
        }
    }

    private static void current(ManagedChannel channel) throws Exception {
        var client = com.google.lf.a2a.v1.A2AServiceGrpc.newBlockingStub(channel);
        var sent = client.sendMessage(currentRequest("java-1")).getTask();
        show("send", "state", sent.getStatus().getState().name(), "text", currentText(sent.getArtifactsList()));
        StringBuilder text = new StringBuilder();
        String state = "";
        var events = client.sendStreamingMessage(currentRequest("java-2"));
        while (events.hasNext()) {
            var event = events.next();
            text.append(currentText(List.of(event.getArtifactUpdate().getArtifact())));
            state = event.hasStatusUpdate() ? event.getStatusUpdate().getStatus().getState().name() : state;
        }
        show("stream", "state", state, "text", text.toString());
        var unknown = com.google.lf.a2a.v1.GetTaskRequest.newBuilder().setId("nobody").build();
        showError("error", () -> client.getTask(unknown));
    }

    private static com.google.lf.a2a.v1.SendMessageRequest currentRequest(String id) {
        var number = Struct.newBuilder().putFields("n", Value.newBuilder().setNumberValue(1).build());
        var message = com.google.lf.a2a.v1.Message.newBuilder()
            .setMessageId(id)
            .setRole(com.google.lf.a2a.v1.Role.ROLE_USER)
            .addParts(com.google.lf.a2a.v1.Part.newBuilder().setText("hello"))
            .addParts(com.google.lf.a2a.v1.Part.newBuilder().setData(Value.newBuilder().setStructValue(number)));
        return com.google.lf.a2a.v1.SendMessageRequest.newBuilder().setMessage(message).build();
    }

    private static String currentText(List<com.google.lf.a2a.v1.Artifact> artifacts) {
        return artifacts.stream()
            .flatMap(artifact -> artifact.getPartsList().stream())
            .map(com.google.lf.a2a.v1.Part::getText)
            .collect(Collectors.joining());
    }

    private static void old(ManagedChannel channel) throws Exception {
        var client = com.google.a2a.v1.A2AServiceGrpc.newBlockingStub(channel);
        var sent = client.sendMessage(oldRequest("java-3")).getTask();
        show("send 0.3", "state", sent.getStatus().getState().name(), "text", oldText(sent.getArtifactsList()));
        StringBuilder text = new StringBuilder();
        String state = "";
        boolean end = false;
        var events = client.sendStreamingMessage(oldRequest("java-4"));
        while (events.hasNext()) {
            var event = events.next();
            text.append(oldText(List.of(event.getArtifactUpdate().getArtifact())));
            state = event.hasStatusUpdate() ? event.getStatusUpdate().getStatus().getState().name() : state;
            end = event.getStatusUpdate().getFinal();
        }
        show("stream 0.3", "state", state, "text", text.toString(), "final", end);
        var unknown = com.google.a2a.v1.GetTaskRequest.newBuilder().setName("tasks/nobody").build();
        showError("error 0.3", () -> client.getTask(unknown));
    }

    private static com.google.a2a.v1.SendMessageRequest oldRequest(String id) {
        var message = com.google.a2a.v1.Message.newBuilder()
            .setMessageId(id)
            .setRole(com.google.a2a.v1.Role.ROLE_USER)
            .addContent(com.google.a2a.v1.Part.newBuilder().setText("hello"));
        var blocking = com.google.a2a.v1.SendMessageConfiguration.newBuilder().setBlocking(true);
        return com.google.a2a.v1.SendMessageRequest.newBuilder()
            .setRequest(message).setConfiguration(blocking).build();
    }

    private static String oldText(List<com.google.a2a.v1.Artifact> artifacts) {
        return artifacts.stream()
            .flatMap(artifact -> artifact.getPartsList().stream())
            .map(com.google.a2a.v1.Part::getText)
            .collect(Collectors.joining());
    }

    public static void main(String[] arguments) throws Exception {
        ManagedChannel channel = ManagedChannelBuilder.forTarget(arguments[0]).usePlaintext().build();
        try {
            current(channel);
            old(channel);
        } finally {
            channel.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
        }
    }
}
