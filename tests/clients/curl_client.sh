#!/bin/sh
# curl against a memlocal whose address is given, as README and people use it. Exits with an error at the first surprise.
set -eu
url=$1
json='content-type: application/json'

has() {
    case $2 in *"$1"*) ;; *) echo "no $1 in: $2" >&2; exit 1 ;; esac
}

has '"status":"ready"' "$(curl -fsS "$url/ready")"
has '"object":"list"' "$(curl -fsS "$url/v1/models")"
chat='{"model":"smollm2-135m-instruct","messages":[{"role":"user","content":"Say hello."}],"max_tokens":8,"temperature":0'
has '"finish_reason":' "$(curl -fsS "$url/v1/chat/completions" -H "$json" -d "$chat}")"
has 'data: [DONE]' "$(curl -fsSN "$url/v1/chat/completions" -H "$json" -d "$chat,\"stream\":true}")"

curl -fsS "$url/v1/corpora" -H "$json" -d '{"name":"curl"}' >/dev/null
printf 'The lamp of the lighthouse was out for two hours.\n' >lamp.txt
job=$(curl -fsS "$url/v1/corpora/curl/documents" -F file=@lamp.txt -F method=rag)
id=$(printf %s "$job" | sed 's/.*"id":"\([^"]*\)".*/\1/')
has '"status":"done"' "$(curl -fsSN "$url/v1/jobs/$id/events")"
has 'two hours' "$(curl -fsS "$url/v1/corpora/curl/search" -H "$json" -d '{"query":"How long was it dark?"}')"
has '"citations":' "$(curl -fsS "$url/v1/corpora/curl/ask" -H "$json" -d '{"question":"How long was the lamp out?","method":"rag"}')"
curl -fsS -X DELETE "$url/v1/corpora/curl"

# What goes wrong has its status and says what.
has 404 "$(curl -sS -o answer -w '%{http_code}' "$url/v1/corpora/curl/documents")"
has '"code":"not_found"' "$(cat answer)"
has 400 "$(curl -sS -o answer -w '%{http_code}' "$url/v1/chat/completions" -d '{')"
has 'Content-Type: application/json' "$(cat answer)"
has 200 "$(curl -sS -o answer -w '%{http_code}' --compressed -H 'expect: 100-continue' "$url/v1/chat/completions" -H "$json" -d "$chat}")"
