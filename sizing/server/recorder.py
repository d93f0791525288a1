"""A shell loop for those who have no scrapes: it asks a server for ten minutes and makes one file that is read here.

It runs where the server can be reached; nothing of this product connects anywhere. Keys and tokens are blanked.
"""

from shlex import quote

from sizing.server.metrics import GAUGES, MARK

URL, FILE = "http://127.0.0.1:30000", "sglang-recorded.txt"
SECONDS, EVERY = 600, 5


def recorder(url: str = URL, file: str = FILE, seconds: int = SECONDS, every: int = EVERY) -> str:
    """The loop as text for a POSIX shell; curl, grep, sed, date and sleep are all that it needs.

    A server behind --api-key wants AUTH="Authorization: Bearer ..." in the environment.
    """
    names = "|".join(GAUGES)
    return f"""#!/bin/sh
# Asks a running SGLang server for {seconds} seconds, every {every}, and writes one file.
# Needs --enable-metrics on the server for /metrics. With --api-key: AUTH='Authorization: Bearer KEY' sh record.sh
url={quote(url)}
file={quote(file)}
get() {{ curl -fsS --max-time 10 ${{AUTH:+-H "$AUTH"}} "$url/$1" 2>/dev/null; }}
hide() {{
  sed -E -e 's/("[a-z_]*(key|token|password|secret)": *")[^"]*"/\\1"/g' \\
    -e 's/(--[a-z-]*(key|token|password|secret)[ =])[^ "]+/\\1/g'
}}
{{ get server_info || get get_server_info; }} | hide >"$file"
echo >>"$file"
end=$(($(date +%s) + {seconds}))
while [ "$(date +%s)" -lt "$end" ]; do
  {{
    echo "{MARK}$(date +%s)"
    get metrics | grep -E '^sglang:({names})[{{ ]'
    get 'v1/loads?include=all'
    echo
  }} >>"$file"
  sleep {every}
done
echo "Written: $file"
"""
