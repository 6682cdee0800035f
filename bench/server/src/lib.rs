//! The benchmark's tools on this project, word for word those of the peers under `bench/`.
//!
//! The server is written the way a user would write it: typed handlers, nothing tuned, all safety limits at their
//! defaults. It must never hold an optimisation that belongs in the SDK. Texts arrive as [`Text`], which shares the
//! memory of the message like the borrowed strings of the bare programs do; [`server_of_strings`] is the same server
//! with `String`, as the peers have it.

pub mod counting;
pub mod tokens;

use counting::Counts;
use linchpin::guard::Guard;
use linchpin::prelude::*;
use serde_json::json;
use tokio::runtime::Runtime;

#[derive(Deserialize, JsonSchema)]
struct Echo {
    message: Text,
}

#[derive(Deserialize, JsonSchema)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(Deserialize, JsonSchema)]
struct Blob {
    size: usize,
}

async fn echo(q: Echo) -> Text {
    q.message
}

async fn add(q: Add) -> String {
    (q.a + q.b).to_string()
}

async fn blob(q: Blob) -> String {
    "x".repeat(q.size)
}

async fn len(q: Echo) -> String {
    q.message.len().to_string()
}

#[derive(Deserialize, JsonSchema)]
struct EchoString {
    message: String,
}

async fn echo_string(q: EchoString) -> String {
    q.message
}

async fn len_string(q: EchoString) -> String {
    q.message.len().to_string()
}

/// An update that changes nothing still tells every listener that the list changed.
async fn fanout(_: &(), cx: &Cx, _: NoArgs) -> &'static str {
    let _ = cx.server().tools().update("fanout", |tool| tool);
    "ok"
}

async fn filler(_: serde_json::Value) -> &'static str {
    "filler"
}

/// The server of the benchmark with `total` tools, filler included.
pub fn server(total: usize) -> Server {
    let server = named().tool(("echo", ECHO), echo).tool(("len", LEN), len);
    rest(server, total)
}

/// The same with `String` in place of [`Text`].
pub fn server_of_strings(total: usize) -> Server {
    let server = named().tool(("echo", ECHO), echo_string).tool(("len", LEN), len_string);
    rest(server, total)
}

/// Adds a tool whose calls are tasks, in memory. All clients together are one owner, who may have as many at once as all together.
pub fn with_tasks(server: Server) -> Server {
    let note = Tool::new("note", "Echo the message back, later").task_required();
    server.tool(note, echo).limits(|limits| limits.tasks.running_per_owner_max = limits.tasks.running_max)
}

const ECHO: &str = "Echo the message back";
const LEN: &str = "Length of the message";

fn named() -> Server {
    Server::new("linchpin-bench", "0.1.0")
}

/// Adds the tools that have no text among their arguments.
fn rest(server: Server, total: usize) -> Server {
    let mut server = server
        .tool(("add", "Add two numbers"), add)
        .tool(("blob", "Return a text of the given size"), blob)
        .tool(("fanout", "Send tools/list_changed to every open stream"), fanout);
    for i in 5..total {
        let description = format!("Filler tool number {i} that gives tools/list a realistic size.");
        let schema = json!({"type": "object", "properties": {
            "message": {"type": "string", "description": "text to process"},
            "count": {"type": "integer", "description": "how many times"}}, "required": ["message"]});
        server = server.tool(Tool::new(format!("tool_{i:05}"), description).input_schema(schema), filler);
    }
    server
}

/// How many tools the server of `bench-allocs` has, besides its own.
pub const TOOLS: usize = 1_000;

/// The same server with the tools that `bench-allocs` asks: `allocations`, `record` and `sites`.
pub fn counted() -> Server {
    server(TOOLS)
        .tool(("allocations", "What was allocated so far"), |_: NoArgs| async {
            let Counts { allocs, reallocs, bytes } = Counts::now();
            format!("{allocs} {reallocs} {bytes}")
        })
        .tool(("record", "Note the stack of every allocation from now on"), |_: NoArgs| async {
            counting::record(true)
        })
        .tool(("sites", "What was noted: bytes and stack, as JSON"), |_: NoArgs| async {
            serde_json::to_string(&counting::take_sites())
        })
}

/// Serves over stdin and stdout until the client closes, on one thread, as `linchpin serve` does.
///
/// # Errors
/// When the runtime cannot start, the server is put together wrongly or the pipe fails.
pub fn run_stdio(server: Server) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(server.serve(stdio().with_graceful_shutdown(shutdown_signal())))?)
}

/// Serves Streamable HTTP on this port of 127.0.0.1 until the process is stopped.
///
/// # Errors
/// When the runtime cannot start, the server is put together wrongly or the port is taken.
pub fn run_http(server: Server, port: u16, guard: Option<Guard>) -> Result<()> {
    let place = http(format!("127.0.0.1:{port}")).with_graceful_shutdown(shutdown_signal());
    let place = match guard {
        Some(guard) => place.guard(guard),
        None => place,
    };
    Ok(runtime()?.block_on(server.serve(place))?)
}

/// What `#[tokio::main]` makes.
fn runtime() -> Result<Runtime> {
    Ok(Runtime::new()?)
}
