import com.google.lf.a2a.v1.A2AServiceGrpc;
import com.google.lf.a2a.v1.Artifact;
import com.google.lf.a2a.v1.CancelTaskRequest;
import com.google.lf.a2a.v1.GetTaskRequest;
import com.google.lf.a2a.v1.Message;
import com.google.lf.a2a.v1.Part;
import com.google.lf.a2a.v1.SendMessageRequest;
import com.google.lf.a2a.v1.SendMessageResponse;
import com.google.lf.a2a.v1.StreamResponse;
import com.google.lf.a2a.v1.Task;
import com.google.lf.a2a.v1.TaskArtifactUpdateEvent;
import com.google.lf.a2a.v1.TaskState;
import com.google.lf.a2a.v1.TaskStatus;
import com.google.lf.a2a.v1.TaskStatusUpdateEvent;
import com.google.protobuf.Any;
import com.google.rpc.Code;
import com.google.rpc.ErrorInfo;
import com.google.rpc.Status;
import io.grpc.Server;
import io.grpc.StatusRuntimeException;
import io.grpc.netty.shaded.io.grpc.netty.NettyServerBuilder;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.StreamObserver;
import java.net.InetSocketAddress;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.Collectors;

/**
 * An agent on stubs that the stock Java tools made from the protos of this project, and on nothing else: v1.0 over gRPC
 * alone. Usage: Agent. Prints HOST:PORT. Texts are said again in pieces; "refuse" is answered by an error of its own,
 * and "wait" works until it is canceled.
 */
public final class Agent extends A2AServiceGrpc.A2AServiceImplBase {
    private final Map<String, Task> tasks = new ConcurrentHashMap<>();
    private final Map<String, CompletableFuture<Void>> stops = new ConcurrentHashMap<>();
    private final AtomicInteger count = new AtomicInteger();

    private static StatusRuntimeException failed(Code code, String reason, String text) {
        var info = ErrorInfo.newBuilder().setReason(reason).setDomain("a2a-protocol.org").putMetadata("at", "java");
        var status = Status.newBuilder().setCode(code.getNumber()).setMessage(text).addDetails(Any.pack(info.build()));
        return StatusProto.toStatusRuntimeException(status.build());
    }

    private Task seen(String id) {
        Task found = tasks.get(id);
        if (found == null) throw failed(Code.NOT_FOUND, "TASK_NOT_FOUND", "no such task here");
        return found;
    }

    /** The task in another state, unless it has ended. */
    private Task end(String id, TaskState state, Artifact... said) {
        return tasks.computeIfPresent(id, (key, task) -> {
            if (task.getStatus().getState() != TaskState.TASK_STATE_WORKING) return task;
            var changed = task.toBuilder().setStatus(TaskStatus.newBuilder().setState(state));
            for (Artifact each : said) changed.addArtifacts(each);
            return changed.build();
        });
    }

    private static Artifact saying(String text) {
        return Artifact.newBuilder().setArtifactId("said").addParts(Part.newBuilder().setText(text)).build();
    }

    private Task work(Message message, Consumer<StreamResponse> tell) {
        String text = message.getPartsList().stream().map(Part::getText).collect(Collectors.joining());
        if (text.equals("refuse")) throw failed(Code.INVALID_ARGUMENT, "CONTENT_TYPE_NOT_SUPPORTED", "not that");
        String id = "java-" + count.incrementAndGet();
        String context = message.getContextId().isEmpty() ? "java" : message.getContextId();
        var status = TaskStatus.newBuilder().setState(TaskState.TASK_STATE_WORKING);
        Task task = Task.newBuilder().setId(id).setContextId(context).setStatus(status).build();
        stops.put(id, new CompletableFuture<>());
        tasks.put(id, task);
        tell.accept(StreamResponse.newBuilder().setTask(task).build());
        if (text.equals("wait")) {
            stops.get(id).join();
        } else {
            String[] words = text.split("(?<= )");
            for (int at = 0; at < words.length; at++) {
                var update = TaskArtifactUpdateEvent.newBuilder().setTaskId(id).setContextId(context);
                update.setArtifact(saying(words[at])).setAppend(at > 0).setLastChunk(at == words.length - 1);
                tell.accept(StreamResponse.newBuilder().setArtifactUpdate(update).build());
            }
        }
        Task done = end(id, TaskState.TASK_STATE_COMPLETED, saying(text));
        var update = TaskStatusUpdateEvent.newBuilder().setTaskId(id).setContextId(context);
        tell.accept(StreamResponse.newBuilder().setStatusUpdate(update.setStatus(done.getStatus())).build());
        return done;
    }

    private static void answered(StreamObserver<?> observer, Runnable work) {
        try {
            work.run();
            observer.onCompleted();
        } catch (StatusRuntimeException fault) {
            observer.onError(fault);
        }
    }

    @Override
    public void sendMessage(SendMessageRequest request, StreamObserver<SendMessageResponse> observer) {
        answered(observer, () -> {
            Task task = work(request.getMessage(), event -> { });
            observer.onNext(SendMessageResponse.newBuilder().setTask(task).build());
        });
    }

    @Override
    public void sendStreamingMessage(SendMessageRequest request, StreamObserver<StreamResponse> observer) {
        answered(observer, () -> work(request.getMessage(), observer::onNext));
    }

    @Override
    public void getTask(GetTaskRequest request, StreamObserver<Task> observer) {
        answered(observer, () -> observer.onNext(seen(request.getId())));
    }

    @Override
    public void cancelTask(CancelTaskRequest request, StreamObserver<Task> observer) {
        answered(observer, () -> {
            if (seen(request.getId()).getStatus().getState() != TaskState.TASK_STATE_WORKING)
                throw failed(Code.FAILED_PRECONDITION, "TASK_NOT_CANCELABLE", "it has ended");
            observer.onNext(end(request.getId(), TaskState.TASK_STATE_CANCELED));
            stops.get(request.getId()).complete(null);
        });
    }

    public static void main(String[] arguments) throws Exception {
        Server server = NettyServerBuilder.forAddress(new InetSocketAddress("127.0.0.1", 0))
            .addService(new Agent()).build().start();
        System.out.println("127.0.0.1:" + server.getPort());
        server.awaitTermination();
    }
}
