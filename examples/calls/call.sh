# call.sh
# Asks an agent over REST, with curl alone. Usage: sh call.sh http://HOST:PORT WORDS
words=$(printf %s "$2" | sed 's/[\\"]/\\&/g') # as JSON has it
body='{"message": {"messageId": "'$(date +%s%N)'", "role": "ROLE_USER", "parts": [{"text": "'$words'"}]}}'
curl --silent --show-error --fail-with-body --no-buffer "$1/message:stream" \
    --header 'A2A-Version: 1.0' --header 'Content-Type: application/json' --data "$body" |
    sed -n 's/^data: //p'
