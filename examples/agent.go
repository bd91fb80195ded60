// agent.go
// An agent on Go's standard library alone: one operation on one wire (SendMessage over JSON-RPC). A gateway in front of
// it gives it the other wires, and v0.3. Usage: go run agent.go HOST:PORT
package main

import (
	"crypto/rand"
	"encoding/json"
	"log"
	"net/http"
	"os"
)

type object = map[string]any

type request struct {
	ID     json.RawMessage
	Method string
	Params struct {
		Message struct {
			ContextID string
			Parts     []struct{ Text string }
		}
	}
}

func card(address string) object {
	return object{
		"name": "Shout", "description": "Says it louder.", "version": "1.0.0",
		"supportedInterfaces": []object{
			{"url": "http://" + address + "/", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
		},
		"capabilities":      object{},
		"defaultInputModes": []string{"text/plain"}, "defaultOutputModes": []string{"text/plain"},
		"skills": []object{
			{"id": "shout", "name": "Shout", "description": "Says it louder.", "tags": []string{"text"}},
		},
	}
}

func answer(asked request) object {
	if asked.Method != "SendMessage" {
		return object{"error": object{"code": -32601, "message": "only SendMessage is known here"}}
	}
	text := ""
	for _, part := range asked.Params.Message.Parts {
		text += part.Text + "!"
	}
	said := object{"messageId": rand.Text(), "role": "ROLE_AGENT", "parts": []object{{"text": text}}}
	if id := asked.Params.Message.ContextID; id != "" {
		said["contextId"] = id
	}
	return object{"result": object{"message": said}}
}

func main() {
	address := os.Args[1]
	write := func(to http.ResponseWriter, value object) {
		to.Header().Set("Content-Type", "application/json")
		json.NewEncoder(to).Encode(value)
	}
	http.HandleFunc("GET /.well-known/agent-card.json", func(to http.ResponseWriter, _ *http.Request) {
		write(to, card(address))
	})
	http.HandleFunc("POST /{$}", func(to http.ResponseWriter, from *http.Request) {
		var asked request
		if err := json.NewDecoder(http.MaxBytesReader(to, from.Body, 1<<20)).Decode(&asked); err != nil {
			write(to, object{"jsonrpc": "2.0", "id": nil, "error": object{"code": -32700, "message": "no JSON"}})
			return
		}
		reply := answer(asked)
		reply["jsonrpc"], reply["id"] = "2.0", asked.ID
		write(to, reply)
	})
	log.Println("Shout is at", address)
	log.Fatal(http.ListenAndServe(address, nil))
}
