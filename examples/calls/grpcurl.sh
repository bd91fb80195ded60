# grpcurl.sh
# Asks an agent over gRPC, whose messages grpcurl learns from the server. Usage: sh grpcurl.sh HOST:PORT WORDS
words=$(printf %s "$2" | sed 's/[\\"]/\\&/g') # as JSON has it
body='{"message": {"messageId": "'$(date +%s%N)'", "role": "ROLE_USER", "parts": [{"text": "'$words'"}]}}'
grpcurl -plaintext -H 'A2A-Version: 1.0' -d "$body" "$1" lf.a2a.v1.A2AService/SendStreamingMessage
