// An agent on stubs that the stock Go tools made from the protos of this project, and on nothing else: v1.0 over gRPC
// alone. Usage: agent. Prints HOST:PORT. Texts are said again in pieces; "refuse" is answered by an error of its own,
// and "wait" works until it is canceled.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"strings"
	"sync"

	v1 "interop/lf/a2a/v1"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

const (
	working   = v1.TaskState_TASK_STATE_WORKING
	completed = v1.TaskState_TASK_STATE_COMPLETED
	canceled  = v1.TaskState_TASK_STATE_CANCELED
)

type agent struct {
	v1.UnimplementedA2AServiceServer
	mutex sync.Mutex
	tasks map[string]*v1.Task
	stops map[string]context.CancelFunc
}

type teller func(*v1.StreamResponse) error

func failed(code codes.Code, reason, text string) error {
	info := &errdetails.ErrorInfo{Reason: reason, Domain: "a2a-protocol.org", Metadata: map[string]string{"at": "go"}}
	told, err := status.New(code, text).WithDetails(info)
	if err != nil {
		log.Fatal(err)
	}
	return told.Err()
}

func (a *agent) seen(id string) (*v1.Task, error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if task, found := a.tasks[id]; found {
		return proto.Clone(task).(*v1.Task), nil
	}
	return nil, failed(codes.NotFound, "TASK_NOT_FOUND", "no such task here")
}

func (a *agent) begin(message *v1.Message) (string, context.Context) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	id, context_id := fmt.Sprintf("go-%d", len(a.tasks)+1), message.ContextId
	if context_id == "" {
		context_id = "go"
	}
	a.tasks[id] = &v1.Task{Id: id, ContextId: context_id, Status: &v1.TaskStatus{State: working}}
	stopped, stop := context.WithCancel(context.Background()) // it outlives its readers
	a.stops[id] = stop
	return id, stopped
}

// Puts a task into a state unless it has ended; the state that it then has.
func (a *agent) end(id string, state v1.TaskState, text string) v1.TaskState {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	task := a.tasks[id]
	if task.Status.State == working {
		task.Status = &v1.TaskStatus{State: state}
		if text != "" {
			part := &v1.Part{Content: &v1.Part_Text{Text: text}}
			task.Artifacts = []*v1.Artifact{{ArtifactId: "said", Parts: []*v1.Part{part}}}
		}
	}
	return task.Status.State
}

func (a *agent) work(message *v1.Message, tell teller) (*v1.Task, error) {
	text := ""
	for _, part := range message.Parts {
		text += part.GetText()
	}
	if text == "refuse" {
		return nil, failed(codes.InvalidArgument, "CONTENT_TYPE_NOT_SUPPORTED", "not that")
	}
	id, stopped := a.begin(message)
	task, _ := a.seen(id)
	if err := tell(&v1.StreamResponse{Payload: &v1.StreamResponse_Task{Task: task}}); err != nil {
		return nil, err
	}
	if text == "wait" {
		<-stopped.Done()
		text = ""
	}
	words := strings.SplitAfter(text, " ")
	for at, word := range words {
		if word == "" {
			continue
		}
		artifact := &v1.Artifact{
			ArtifactId: "said",
			Parts:      []*v1.Part{{Content: &v1.Part_Text{Text: word}}},
		}
		update := &v1.TaskArtifactUpdateEvent{
			TaskId: id, ContextId: task.ContextId, Artifact: artifact, Append: at > 0, LastChunk: at == len(words)-1,
		}
		if err := tell(&v1.StreamResponse{Payload: &v1.StreamResponse_ArtifactUpdate{ArtifactUpdate: update}}); err != nil {
			return nil, err
		}
	}
	state := &v1.TaskStatus{State: a.end(id, completed, text)}
	update := &v1.TaskStatusUpdateEvent{TaskId: id, ContextId: task.ContextId, Status: state}
	if err := tell(&v1.StreamResponse{Payload: &v1.StreamResponse_StatusUpdate{StatusUpdate: update}}); err != nil {
		return nil, err
	}
	return a.seen(id)
}

func (a *agent) SendMessage(_ context.Context, request *v1.SendMessageRequest) (*v1.SendMessageResponse, error) {
	task, err := a.work(request.Message, func(*v1.StreamResponse) error { return nil })
	if err != nil {
		return nil, err
	}
	return &v1.SendMessageResponse{Payload: &v1.SendMessageResponse_Task{Task: task}}, nil
}

func (a *agent) SendStreamingMessage(
	request *v1.SendMessageRequest, stream grpc.ServerStreamingServer[v1.StreamResponse],
) error {
	_, err := a.work(request.Message, stream.Send)
	return err
}

func (a *agent) GetTask(_ context.Context, request *v1.GetTaskRequest) (*v1.Task, error) {
	return a.seen(request.Id)
}

func (a *agent) CancelTask(_ context.Context, request *v1.CancelTaskRequest) (*v1.Task, error) {
	task, err := a.seen(request.Id)
	if err != nil {
		return nil, err
	}
	if task.Status.State != working {
		return nil, failed(codes.FailedPrecondition, "TASK_NOT_CANCELABLE", "it has ended")
	}
	a.end(request.Id, canceled, "")
	a.stops[request.Id]()
	return a.seen(request.Id)
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	v1.RegisterA2AServiceServer(server, &agent{tasks: map[string]*v1.Task{}, stops: map[string]context.CancelFunc{}})
	fmt.Println(listener.Addr())
	log.Fatal(server.Serve(listener))
}
