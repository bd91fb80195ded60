// Calls an agent through stubs that the stock Go tools made from the protos of this project.
// Usage: go HOST:PORT. Prints one JSON line a step.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"

	v03 "interop/a2a/v1"
	v1 "interop/lf/a2a/v1"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

type line map[string]any

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func show(step string, facts line) {
	facts["step"] = step
	fmt.Println(string(must(json.Marshal(facts))))
}

func showError(step string, err error) {
	facts := line{"status": int(status.Code(err))}
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			facts["reason"], facts["domain"] = info.Reason, info.Domain
		}
	}
	show(step, facts)
}

func current(ctx context.Context, channel *grpc.ClientConn) {
	client := v1.NewA2AServiceClient(channel)
	request := func(id string) *v1.SendMessageRequest {
		data := &v1.Part{Content: &v1.Part_Data{Data: must(structpb.NewValue(map[string]any{"n": 1}))}}
		text := &v1.Part{Content: &v1.Part_Text{Text: "hello"}}
		return &v1.SendMessageRequest{
			Message: &v1.Message{MessageId: id, Role: v1.Role_ROLE_USER, Parts: []*v1.Part{text, data}},
		}
	}
	task := must(client.SendMessage(ctx, request("go-1"))).GetTask()
	show("send", line{"state": task.Status.State.String(), "text": v1Text(task.Artifacts...)})
	stream, text, state := must(client.SendStreamingMessage(ctx, request("go-2"))), "", ""
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		switch payload := must(event, err).Payload.(type) {
		case *v1.StreamResponse_ArtifactUpdate:
			text += v1Text(payload.ArtifactUpdate.Artifact)
		case *v1.StreamResponse_StatusUpdate:
			state = payload.StatusUpdate.Status.State.String()
		}
	}
	show("stream", line{"state": state, "text": text})
	_, err := client.GetTask(ctx, &v1.GetTaskRequest{Id: "nobody"})
	showError("error", err)
}

func v1Text(artifacts ...*v1.Artifact) (text string) {
	for _, artifact := range artifacts {
		for _, part := range artifact.Parts {
			text += part.GetText()
		}
	}
	return
}

func old(ctx context.Context, channel *grpc.ClientConn) {
	client := v03.NewA2AServiceClient(channel)
	request := func(id string) *v03.SendMessageRequest {
		text := &v03.Part{Part: &v03.Part_Text{Text: "hello"}}
		return &v03.SendMessageRequest{
			Request:       &v03.Message{MessageId: id, Role: v03.Role_ROLE_USER, Content: []*v03.Part{text}},
			Configuration: &v03.SendMessageConfiguration{Blocking: true},
		}
	}
	task := must(client.SendMessage(ctx, request("go-3"))).GetTask()
	show("send 0.3", line{"state": task.Status.State.String(), "text": v03Text(task.Artifacts...)})
	stream, text, state, final := must(client.SendStreamingMessage(ctx, request("go-4"))), "", "", false
	for {
		event, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		switch payload := must(event, err).Payload.(type) {
		case *v03.StreamResponse_ArtifactUpdate:
			text += v03Text(payload.ArtifactUpdate.Artifact)
		case *v03.StreamResponse_StatusUpdate:
			state, final = payload.StatusUpdate.Status.State.String(), payload.StatusUpdate.Final
		}
	}
	show("stream 0.3", line{"state": state, "text": text, "final": final})
	_, err := client.GetTask(ctx, &v03.GetTaskRequest{Name: "tasks/nobody"})
	showError("error 0.3", err)
}

func v03Text(artifacts ...*v03.Artifact) (text string) {
	for _, artifact := range artifacts {
		for _, part := range artifact.Parts {
			text += part.GetText()
		}
	}
	return
}

func main() {
	channel := must(grpc.NewClient(os.Args[1], grpc.WithTransportCredentials(insecure.NewCredentials())))
	defer channel.Close()
	current(context.Background(), channel)
	old(context.Background(), channel)
}
