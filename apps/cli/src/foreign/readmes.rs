//! The command lines in the READMEs that were published with supergateway 4.0.0, mcp-remote 0.15.1 and mcp-proxy 6.7.19 (npm)
//! and 0.13.0 (PyPI), with other hosts: each becomes a command line of ours that is understood, or stops with a sentence.

use super::{Foreign, mcp_proxy, mcp_remote, shell, supergateway};
use std::ffi::OsString;

fn shown(foreign: Foreign, line: &str) -> Result<String, String> {
    let words = shell::split(line).unwrap();
    let env = |name: &str| (name == "API_ACCESS_TOKEN").then(|| "t".to_owned());
    let made = match foreign {
        Foreign::Supergateway => supergateway::translated(&words),
        Foreign::McpRemote => mcp_remote::translated(&words),
        Foreign::McpProxy => mcp_proxy::translated(&words, &env),
    };
    let made = made.map_err(|failure| failure.message().to_owned())?;
    let ours: Vec<OsString> =
        ["linchpin", "bridge"].into_iter().chain(made.words.iter().map(String::as_str)).map(Into::into).collect();
    if let Err(error) = crate::cli::Cli::parsed(&ours) {
        panic!("`{line}` became what is not understood: {error}");
    }
    Ok(shell::joined(&made.words))
}

/// What becomes of a line.
enum To {
    Ours(&'static str),
    Stops(&'static str),
}
use To::{Ours, Stops};

fn check(foreign: Foreign, rows: &[(&str, To)]) {
    for (line, want) in rows {
        match (shown(foreign, line), want) {
            (Ok(ours), Ours(want)) => assert_eq!(ours, *want, "{line}"),
            (Err(why), Stops(want)) => {
                assert!(why.contains(want), "{line}: {why}");
                assert!(!why.contains('\n'), "one sentence: {why}");
            }
            (Ok(ours), Stops(_)) => panic!("{line} became {ours}"),
            (Err(why), Ours(_)) => panic!("{line} stops: {why}"),
        }
    }
}

#[test]
fn the_command_lines_of_supergateway() {
    check(
        Foreign::Supergateway,
        &[
            (
                "--stdio 'uvx mcp-server-git'",
                Ours("--http 127.0.0.1:8000 --sse --stop-with-stdin --inherit-env -- uvx mcp-server-git"),
            ),
            (
                "--stdio 'npx -y @scope/server-filesystem ./my-folder' --port 8000 --baseUrl http://localhost:8000 --ssePath /sse --messagePath /message",
                Ours(
                    "--http 127.0.0.1:8000 --sse --sse-path /sse --message-path /message --accept-host localhost:8000 --stop-with-stdin --inherit-env -- npx -y @scope/server-filesystem ./my-folder",
                ),
            ),
            ("--sse https://mcp.example.com", Ours("--transport sse --url https://mcp.example.com")),
            (
                "--sse https://mcp.example.com --oauth2Bearer some-token --header 'X-My-Header: another-value'",
                Ours(
                    "--bearer some-token --header 'X-My-Header: another-value' --transport sse --url https://mcp.example.com",
                ),
            ),
            (
                "--streamableHttp https://mcp.example.com/mcp",
                Ours("--transport http --url https://mcp.example.com/mcp"),
            ),
            (
                "--streamableHttp https://mcp.example.com/mcp --oauth2Bearer some-token --header 'X-My-Header: another-value'",
                Ours(
                    "--bearer some-token --header 'X-My-Header: another-value' --transport http --url https://mcp.example.com/mcp",
                ),
            ),
            (
                "--stdio 'npx -y @scope/server-filesystem ./my-folder' --outputTransport streamableHttp --port 8000",
                Ours(
                    "--http 127.0.0.1:8000 --sessions off --isolation fresh --warm 4 --stop-with-stdin --inherit-env -- npx -y @scope/server-filesystem ./my-folder",
                ),
            ),
            (
                "--stdio 'npx -y @scope/server-filesystem ./my-folder' --outputTransport streamableHttp --stateful --sessionTimeout 60000 --port 8000",
                Ours(
                    "--http 127.0.0.1:8000 --idle-stop 60000ms --stop-with-stdin --inherit-env -- npx -y @scope/server-filesystem ./my-folder",
                ),
            ),
            (
                "--stdio 'npx -y @scope/server-filesystem ./my-folder' --port 8000 --outputTransport ws --messagePath /message",
                Stops("no revision of the protocol has WebSockets"),
            ),
            (
                "--port 8000 --stdio 'npx -y @scope/server-filesystem /Users/MyName/Desktop'",
                Ours(
                    "--http 127.0.0.1:8000 --sse --stop-with-stdin --inherit-env -- npx -y @scope/server-filesystem /Users/MyName/Desktop",
                ),
            ),
            (
                "--stdio 'deno run -A jsr:@scope/server --url https://example.com'",
                Ours(
                    "--http 127.0.0.1:8000 --sse --stop-with-stdin --inherit-env -- deno run -A jsr:@scope/server --url https://example.com",
                ),
            ),
            // The flags that are described without a whole line.
            (
                "--stdio x --outputTransport streamableHttp --stateful --streamableHttpPath /m",
                Ours("--http 127.0.0.1:8000 --path /m --stop-with-stdin --inherit-env -- x"),
            ),
            (
                "--stdio x --logLevel debug --cors",
                Ours("-v --http 127.0.0.1:8000 --sse --cors '*' --stop-with-stdin --inherit-env -- x"),
            ),
            (
                "--stdio x --logLevel none --cors http://a.example http://b.example --port 1",
                Ours(
                    "--http 127.0.0.1:1 --sse --cors http://a.example --cors http://b.example --stop-with-stdin --inherit-env -- x",
                ),
            ),
            ("--stdio x --cors '/example\\\\.com$/'", Stops("patterns of origins")),
            (
                "--stdio x --healthEndpoint /healthz --healthEndpoint /live",
                Ours(
                    "--http 127.0.0.1:8000 --sse --health /healthz --health /live --stop-with-stdin --inherit-env -- x",
                ),
            ),
            ("--stdio x --header 'x-user-id: 123'", Stops("no server to send them to")),
            (
                "--stdio x --healthEndpoint /a /b",
                Ours("--http 127.0.0.1:8000 --sse --health /a --health /b --stop-with-stdin --inherit-env -- x"),
            ),
            (
                "--streamableHttp https://mcp.example.com/mcp --header 'A: b' 'C: d'",
                Ours("--header 'A: b' --header 'C: d' --transport http --url https://mcp.example.com/mcp"),
            ),
            ("--streamableHttp https://mcp.example.com/mcp --header", Stops("--header needs a value")),
            (
                "--stdio x --host 0.0.0.0 --accept-host box.example",
                Ours(
                    "--http 0.0.0.0:8000 --no-auth-i-know --sse --accept-host box.example --stop-with-stdin --inherit-env -- x",
                ),
            ),
            (
                "--stdio x --host box.example",
                Ours(
                    "--http box.example:8000 --no-auth-i-know --accept-host box.example --sse --stop-with-stdin --inherit-env -- x",
                ),
            ),
            ("--stdio x --host ::1", Ours("--http '[::1]:8000' --sse --stop-with-stdin --inherit-env -- x")),
            ("--stdio x --outputTransport stdio", Ours("--inherit-env -- x")),
            ("--stdio x --logLevel bogus", Stops("--logLevel: expected debug, info or none")),
            ("--stdio x --sessionTimeout abc", Stops("--sessionTimeout: `abc` is not a number of milliseconds")),
            ("--stdio x --portt 1", Stops("no flag --portt")),
            ("--port 1", Stops("one of --stdio, --sse and --streamableHttp")),
        ],
    );
}

#[test]
fn the_command_lines_of_mcp_remote() {
    check(
        Foreign::McpRemote,
        &[
            ("https://example.com/sse", Ours("--era legacy --url https://example.com/sse")),
            (
                "https://example.com/sse --header 'Authorization: Bearer ${AUTH_TOKEN}'",
                Ours("--header 'Authorization: Bearer ${AUTH_TOKEN}' --era legacy --url https://example.com/sse"),
            ),
            (
                "https://example.com/sse --header 'Authorization:${AUTH_HEADER}'",
                Ours("--header 'Authorization:${AUTH_HEADER}' --era legacy --url https://example.com/sse"),
            ),
            (
                "https://example.com/sse --header-file /path/to/headers.txt",
                Ours("--header-file /path/to/headers.txt --era legacy --url https://example.com/sse"),
            ),
            ("https://example.com/v1/sse --resource https://tenant1.example.net/", Stops("the resource is always")),
            (
                "https://example.com/mcp --authorize-param access_type=offline --authorize-param prompt=consent",
                Stops("--authorize-param"),
            ),
            ("https://example.com/mcp --disable-resource-parameter", Stops("--disable-resource-parameter")),
            (
                "https://example.com/sse 9696",
                Ours(
                    "--callback-port 9696 --callback-host localhost --callback-path /oauth/callback --era legacy --url https://example.com/sse",
                ),
            ),
            (
                "https://example.com/sse --host 127.0.0.1",
                Ours(
                    "--callback-host 127.0.0.1 --callback-path /oauth/callback --era legacy --url https://example.com/sse",
                ),
            ),
            (
                "https://example.com/sse --callback-path /custom/callback",
                Ours(
                    "--callback-host localhost --callback-path /custom/callback --era legacy --url https://example.com/sse",
                ),
            ),
            ("https://example.com/sse --auth-success-url https://app.example.com/done", Stops("--auth-success-url")),
            (
                "http://internal-service.vpc/sse --allow-http",
                Ours("--allow-plain-http --era legacy --url http://internal-service.vpc/sse"),
            ),
            ("https://example.com/sse --debug", Ours("-v --era legacy --url https://example.com/sse")),
            ("https://example.com/sse --silent", Ours("--era legacy --url https://example.com/sse")),
            ("https://example.com/sse --enable-proxy", Ours("--era legacy --url https://example.com/sse")),
            (
                "https://example.com/sse --ignore-tool 'delete*' --ignore-tool 'remove*'",
                Ours("--no-tools 'delete*' --no-tools 'remove*' --era legacy --url https://example.com/sse"),
            ),
            (
                "https://example.com/sse --auth-timeout 60",
                Ours("--login-timeout 60 --era legacy --url https://example.com/sse"),
            ),
            (
                "https://example.com/sse --connect-timeout 30 --body-timeout 0",
                Ours("--era legacy --url https://example.com/sse"),
            ),
            (
                "https://example.com/sse --keep-alive --ping-interval 60",
                Ours("--keep-alive 60 --era legacy --url https://example.com/sse"),
            ),
            (
                "https://example.com/sse --keep-alive",
                Ours("--keep-alive 30 --era legacy --url https://example.com/sse"),
            ),
            ("https://example.com/sse --ipv4", Ours("--era legacy --url https://example.com/sse")),
            (
                "https://example.com/server --transport sse-only",
                Ours("--transport sse --era legacy --url https://example.com/server"),
            ),
            ("https://example.com/server --transport sse-first", Stops("use http-first")),
            ("https://example.com/mcp --protocol auto", Ours("--era auto --url https://example.com/mcp")),
            (
                r#"https://example.com/server --static-oauth-client-metadata '{ "scope": "space separated scopes" }'"#,
                Ours("--scope space --scope separated --scope scopes --era legacy --url https://example.com/server"),
            ),
            (
                "https://example.com/server --static-oauth-client-metadata '@/no/such/file.json'",
                Stops("/no/such/file.json"),
            ),
            (
                r#"https://example.com/server --static-oauth-client-metadata '{ "token_endpoint_auth_method": "client_secret_post" }'"#,
                Ours("--era legacy --url https://example.com/server"),
            ),
            (
                r#"https://example.com/server --static-oauth-client-info '{ "client_id": "xxx", "client_secret": "yyy" }'"#,
                Stops("${VARIABLE}"),
            ),
            (
                r#"https://example.com/server 9696 --static-oauth-client-info '{ "client_id": "xxx" }'"#,
                Ours(
                    "--callback-port 9696 --client-id xxx --callback-host localhost --callback-path /oauth/callback --era legacy --url https://example.com/server",
                ),
            ),
            (
                "https://example.com/server --client-metadata-url https://client.example.com/.well-known/oauth-client",
                Ours(
                    "--client-metadata-url https://client.example.com/.well-known/oauth-client --callback-host localhost --callback-path /oauth/callback --era legacy --url https://example.com/server",
                ),
            ),
            (
                "https://example.com/server 3334 --client-metadata-url https://client.example.com/oauth-client",
                Ours(
                    "--callback-port 3334 --client-metadata-url https://client.example.com/oauth-client --callback-host localhost --callback-path /oauth/callback --era legacy --url https://example.com/server",
                ),
            ),
            (
                r#"https://example.com/mcp --client-credentials --static-oauth-client-info '{"client_id":"my-client","client_secret":"${MCP_CLIENT_SECRET}"}'"#,
                Ours(
                    "--client-credentials --client-id my-client --client-secret-env MCP_CLIENT_SECRET --era legacy --url https://example.com/mcp",
                ),
            ),
            (
                r#"https://example.com/mcp 9696 --auth-timeout 60 --client-credentials --static-oauth-client-info '{"client_id":"c","client_secret":"${S}"}'"#,
                Ours(
                    "--client-credentials --client-id c --client-secret-env S --era legacy --url https://example.com/mcp",
                ),
            ),
            (
                r#"https://example.com/mcp --client-credentials --token-endpoint https://auth.example.com/oauth/token --static-oauth-client-info '{"client_id":"c","client_secret":"${S}"}'"#,
                Stops("--token-endpoint"),
            ),
            ("https://example.com/server --device-code", Stops("--no-browser")),
            ("https://example.com/server --disable-cookies", Ours("--era legacy --url https://example.com/server")),
            ("https://example.com/server --use-id-token", Stops("--use-id-token")),
            ("", Stops("the URL of the server")),
        ],
    );
}

#[test]
fn the_command_lines_of_mcp_proxy_of_pypi() {
    check(
        Foreign::McpProxy,
        &[
            (
                "http://example.io/sse",
                Ours("--bearer-env API_ACCESS_TOKEN --transport sse --url http://example.io/sse"),
            ),
            (
                "--transport=streamablehttp --headers Authorization 'Bearer x' https://example.com/mcp",
                Ours(
                    "--header 'Authorization: Bearer x' --bearer-env API_ACCESS_TOKEN --transport http --url https://example.com/mcp",
                ),
            ),
            (
                "https://example.com/sse --headers A B --transport streamablehttp",
                Ours("--header 'A: B' --bearer-env API_ACCESS_TOKEN --transport http --url https://example.com/sse"),
            ),
            (
                "--debug https://example.com/sse -H A B",
                Ours("-v --header 'A: B' --bearer-env API_ACCESS_TOKEN --transport sse --url https://example.com/sse"),
            ),
            ("https://example.com/sse --heders A B", Stops("no flag --heders")),
            ("https://example.com/sse more", Stops("unexpected argument `more`")),
            ("your-command --port 8080", Ours("--http 127.0.0.1:0 --sse -- your-command --port 8080")),
            ("--pass-environment x", Ours("--http 127.0.0.1:0 --sse --inherit-env -- x")),
            (
                "--host=0.0.0.0 --accept-host box.example x",
                Ours("--http 0.0.0.0:0 --no-auth-i-know --sse --accept-host box.example -- x"),
            ),
            ("uvx mcp-server-fetch", Ours("--http 127.0.0.1:0 --sse -- uvx mcp-server-fetch")),
            ("--port=8080 uvx mcp-server-fetch", Ours("--http 127.0.0.1:8080 --sse -- uvx mcp-server-fetch")),
            ("--sse-port=8080 uvx mcp-server-fetch", Ours("--http 127.0.0.1:8080 --sse -- uvx mcp-server-fetch")),
            (
                "--host=0.0.0.0 --port=8080 uvx mcp-server-fetch",
                Ours("--http 0.0.0.0:8080 --no-auth-i-know --sse -- uvx mcp-server-fetch"),
            ),
            (
                "--port=8080 -- uvx mcp-server-fetch --user-agent=YourUserAgent",
                Ours("--http 127.0.0.1:8080 --sse -- uvx mcp-server-fetch --user-agent=YourUserAgent"),
            ),
            (
                "--port=8080 --named-server fetch 'uvx mcp-server-fetch' --named-server fetch2 'uvx x'",
                Stops("one server"),
            ),
            ("--port=8080 --named-server-config ./servers.json", Stops("one server")),
            (
                "--port=8080 --allow-origin='*' --expose-header Custom-Header uvx mcp-server-fetch",
                Ours("--http 127.0.0.1:8080 --sse --cors '*' -- uvx mcp-server-fetch"),
            ),
            ("-e FOO BAR --cwd /tmp -- uvx x", Ours("--env FOO=BAR --cwd /tmp --http 127.0.0.1:0 --sse -- uvx x")),
            (
                "-e FOO BAR --cwd /tmp https://example.com/sse",
                Ours("--bearer-env API_ACCESS_TOKEN --transport sse --url https://example.com/sse"),
            ),
            ("-H A B --username u --password p -- uvx x", Ours("--http 127.0.0.1:0 --sse -- uvx x")),
            ("--stateless --port 1 uvx x", Ours("--http 127.0.0.1:1 --sse --sessions off -- uvx x")),
            (
                "--client-id i --client-secret s --token-url https://a.example https://example.com/sse",
                Stops("linchpin auth login"),
            ),
            (
                "--username user --password password https://example.com/sse",
                Ours(
                    "--header 'Authorization: Basic dXNlcjpwYXNzd29yZA==' --bearer-env API_ACCESS_TOKEN --transport sse --url https://example.com/sse",
                ),
            ),
            ("--digest https://example.com/sse", Stops("Basic")),
            ("--no-verify-ssl https://example.com/sse", Stops("certificates are always checked")),
            ("--port x y", Stops("`x` is not a port")),
        ],
    );
}

#[test]
fn the_command_lines_of_mcp_proxy_of_npm() {
    check(
        Foreign::McpProxy,
        &[
            // Without a flag of its own it cannot be told from the other one, whose port is any.
            (
                "npx -y @scope/server-filesystem /path",
                Ours("--http 127.0.0.1:0 --sse -- npx -y @scope/server-filesystem /path"),
            ),
            (
                "--upstreamProtocol auto -- my-modern-mcp-server",
                Ours("--era auto --http 127.0.0.1:8080 --sse --inherit-env -- my-modern-mcp-server"),
            ),
            ("--port 8080 --shell -- tsx server.js", Stops("no shell is run")),
            (
                "-- python -u -m your_package.mcp_server",
                Ours("--http 127.0.0.1:0 --sse -- python -u -m your_package.mcp_server"),
            ),
            ("--port 8080 --tunnel -- tsx server.js", Stops("there is no tunnel")),
            ("--port 8080 --tunnel --tunnelSubdomain myapp -- tsx server.js", Stops("there is no tunnel")),
            (
                "--port 8080 --stateless -- tsx server.js",
                Ours("--http 127.0.0.1:8080 --sse --sessions off -- tsx server.js"),
            ),
            (
                "--port 8080 --stateless --server stream -- tsx server.js",
                Ours("--http 127.0.0.1:8080 --sessions off --inherit-env -- tsx server.js"),
            ),
            ("--port 8080 --apiKey your-secret-key -- tsx server.js", Stops("--auth keys:FILE")),
            ("--port 8080 -- tsx server.js", Ours("--http 127.0.0.1:8080 --sse -- tsx server.js")),
            ("--port 8080 --apiKey secret --corsAddAllowedHeader X-API-Key -- npx x", Stops("--auth keys:FILE")),
            (
                "--no-modern --requestTimeout 5000 --sessionIdleTimeout 9000 -- x",
                Ours(
                    "--call-timeout 5000ms --idle-stop 9000ms --http 127.0.0.1:8080 --sse --serve-era legacy --inherit-env -- x",
                ),
            ),
            ("--requestTimeout soon -- x", Stops("--requestTimeout: `soon` is not a number of milliseconds")),
            (
                "--server sse --endpoint /events -- x",
                Ours("--http 127.0.0.1:8080 --sse --sse-path /events --inherit-env -- x"),
            ),
            (
                "--streamEndpoint /m --sseEndpoint /s -- x",
                Ours("--http 127.0.0.1:8080 --sse --path /m --sse-path /s --inherit-env -- x"),
            ),
            (
                "--sslCert c.pem --sslKey k.pem --maxBodySize 0 -- x",
                Ours("--http 127.0.0.1:8080 --sse --tls-cert c.pem --tls-key k.pem --inherit-env -- x"),
            ),
        ],
    );
}

#[test]
fn what_a_shell_would_do_in_a_command_line_is_refused() {
    let checked = |line: &str| {
        shown(
            Foreign::Supergateway,
            &shell::joined(&["--stdio".into(), line.into(), "--outputTransport".into(), "stdio".into()]),
        )
    };
    for (line, syntax) in [
        ("a && b", "&& "),
        ("a || b", "|| "),
        ("a | b", "| "),
        ("a;b", "; "),
        ("a > b", "> "),
        ("a 2>&1", "> "),
        ("a < b", "< "),
        ("a &", "& "),
        ("(a)", "( "),
        ("a `b`", "` "),
        ("a \"`b`\"", "` "),
        ("a $HOME", "$HOME "),
        ("a \"$HOME/x\"", "$HOME "),
        ("a ${HOME}", "${ "),
        ("a $(b)", "$( "),
        ("~/a", "~ "),
        ("a ~", "~ "),
    ] {
        let want = format!("--stdio: {syntax}needs a shell, and none is run: write sh -c '…' around the command line");
        assert_eq!(checked(line), Err(want), "{line}");
    }
    for (line, ours) in [
        ("sh -c 'a && b > $HOME'", "-- sh -c 'a && b > $HOME'"),
        ("a \"b && c;\" 'd|e' \"it's\"", "-- a 'b && c;' 'd|e' 'it'\\''s'"),
        (r"a \$HOME \~ \&", r"-- a '$HOME' '~' '&'"),
        ("a b~ $ 5$ # && c", "-- a 'b~' '$' '5$'"),
        ("FOO=1 BAR='x y' node x=1", "--env FOO=1 --env 'BAR=x y' -- node x=1"),
        ("1FOO=1 a-b=2", "-- 1FOO=1 a-b=2"),
    ] {
        assert_eq!(checked(line), Ok(format!("--inherit-env {ours}")), "{line}");
    }
    assert_eq!(checked("FOO=1"), Err("--stdio: not a command line".to_owned()));
}
