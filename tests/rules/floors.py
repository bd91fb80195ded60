"""The floor of every module of the package.

Laws: a table and its look-up, nothing else; a new module needs a place here.
"""

FLOORS = {
    1: """call config errors extras methods protojson protojson_fields protojson_read protojson_text protojson_values
        protojson_write python310 python310_asyncio ready v03 v03_cards v03_errors v03_json v03_names v03_params
        v03_paths v03_proto v03_results v03_write""",
    2: """agent auth auth_basic auth_jwt auth_keys auth_rates cards content key_files paging push push_guard push_hosts
        push_post push_secrets signing tasks tasks.bus tasks.bus_nats tasks.bus_postgres tasks.bus_remote
        tasks.cancels tasks.commits tasks.context tasks.engine tasks.feed tasks.fence tasks.handle tasks.inbox
        tasks.invoke tasks.listing tasks.memory tasks.memory_push tasks.parts tasks.posts tasks.postgres
        tasks.postgres_commits tasks.postgres_link tasks.postgres_reads tasks.reads tasks.relay tasks.run tasks.schema
        tasks.schema_postgres tasks.sends tasks.sqlite tasks.sqlite_file store_watch tasks.start tasks.state tasks.store
        tasks.told tasks.upkeep tasks.views telemetry telemetry_logs telemetry_otel telemetry_parts telemetry_prometheus
        telemetry_sums verification""",
    3: """bindings bindings.asgi bindings.asgi_exchange bindings.asgi_grpc bindings.browsers bindings.cors bindings.grpc
        bindings.health bindings.http bindings.http_plain bindings.jsonrpc bindings.mounts bindings.openapi
        bindings.reflection bindings.rest bindings.rpc bindings.sse bindings.streams bindings.tls bindings.wire
        card_pages client client_auth client_calls client_cards client_connection client_dial client_http2
        client_reading client_retries client_silence client_streams client_wires gateway gateway_log gateway_tasks
        gateway_way inspector push_receiver remote routing service sync""",
    4: """__main__ adapters adapters.langgraph adapters.openai_chat adapters.process admin admin_views cli commands
        commands.call commands.card commands.chat commands.completion commands.db commands.doctor
        commands.gateway commands.mcp commands.push commands.reaching commands.serve commands.telling
        commands.top commands.words demo doctor envoy envoy_app mcp opening server testing workers""",
    5: "",
}
"""Every module with its floor; a module may import its own floor and those below. Floor 5 is the package itself."""


def floor_of(name: str) -> int | None:
    """The floor of a module named below the package, None when it has no place."""
    return next((number for number, names in FLOORS.items() if name in (names.split() or [""])), None)
