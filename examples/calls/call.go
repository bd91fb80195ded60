// call.go
// Asks an agent over REST, and prints the answer as it comes. Usage: go run call.go http://HOST:PORT WORDS
package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"
)

type part struct {
	Text string `json:"text,omitempty"`
	Data any    `json:"data,omitempty"`
}

type message struct {
	ID    string `json:"messageId"`
	Role  string `json:"role"`
	Parts []part `json:"parts"`
}

type event struct {
	ArtifactUpdate struct{ Artifact struct{ Parts []part } }
	StatusUpdate   struct{ Status struct{ State string } }
}

func main() {
	asked := message{rand.Text(), "ROLE_USER", []part{{Text: os.Args[2]}}}
	body, _ := json.Marshal(map[string]any{"message": asked})
	request, err := http.NewRequest("POST", os.Args[1]+"/message:stream", bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("A2A-Version", "1.0")
	request.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		fault, _ := io.ReadAll(reply.Body)
		log.Fatalf("%s: %s", reply.Status, fault)
	}
	lines := bufio.NewScanner(reply.Body)
	lines.Buffer(nil, 64<<20) // an event is one line, which may hold a file
	for lines.Scan() {
		data, found := strings.CutPrefix(lines.Text(), "data: ")
		var got event
		if !found || json.Unmarshal([]byte(data), &got) != nil {
			continue
		}
		for _, part := range got.ArtifactUpdate.Artifact.Parts {
			if part.Data != nil {
				fmt.Println(part.Data)
			} else {
				fmt.Println(part.Text)
			}
		}
		if state := got.StatusUpdate.Status.State; state != "" {
			fmt.Println(state)
		}
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}
