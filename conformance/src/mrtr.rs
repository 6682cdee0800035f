//! Tools and a prompt that ask in rounds (`input_required`), and what else only stand-alone requests have.

use crate::ask::{ask_model, said};
use linchpin::prelude::*;
use linchpin::types::root::Root;
use serde_json::json;

/// Adds them.
pub(crate) fn add(server: Server) -> Server {
    let fixture = |name: &str, title: &str, description: &str| {
        Tool::new(name, description).title(title).read_only().open_world(true)
    };
    let mrtr = |what: &str, title: &str, description: &str| {
        fixture(&format!("test_input_required_result_{what}"), title, description)
    };
    server
        .tool(mrtr("elicitation", "Round: elicitation", "Asks for a name and greets."), name)
        .tool(mrtr("sampling", "Round: sampling", "Asks the model for a capital."), capital)
        .tool(mrtr("list_roots", "Round: roots", "Asks for the client's roots."), roots)
        .tool(mrtr("request_state", "Round: state", "Asks to confirm, and checks its state."), state)
        .tool(mrtr("multiple_inputs", "Round: several inputs", "Asks three things at once."), several)
        .tool(mrtr("multi_round", "Rounds", "Asks two things one after the other."), two_rounds)
        .tool(mrtr("tampered_state", "Round: tampered state", "Asks to confirm; refuses changed state."), state)
        .tool(mrtr("capabilities", "Round: capabilities", "Asks only what the client can answer."), capabilities)
        .tool(fixture("test_streaming_elicitation", "Elicitation", "Asks for a name."), name)
        .tool(fixture("test_missing_capability", "Needs sampling", "Only for clients that can sample."), needs_sampling)
        .prompt(
            Prompt::new("test_input_required_result_prompt", "Asks for the context it is to use.")
                .title("Asking prompt"),
            prompt,
        )
}

#[derive(Deserialize, JsonSchema)]
struct Name {
    name: String,
}

async fn name(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let user: Name = cx.elicit("user_name", "What is your name?").await?;
    Ok(format!("Hello, {}!", user.name))
}

async fn capital(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let answer = cx.sample("capital_question", ask_model("What is the capital of France?", 100)).await?;
    Ok(format!("The model said: {}", said(&answer)))
}

fn list(roots: &[Root]) -> String {
    roots.iter().map(|root| root.uri.as_str()).collect::<Vec<_>>().join(", ")
}

async fn roots(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let roots = cx.roots("client_roots").await?;
    Ok(format!("{} roots: {}", roots.len(), list(&roots)))
}

#[derive(Deserialize, JsonSchema)]
struct Confirm {
    ok: bool,
}

async fn state(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    // Computed in the first round, carried in the sealed state, and not repeated in the second.
    let ticket = cx.memoize("ticket", async { Ok("state-ok".to_owned()) }).await?;
    let confirmed: Confirm = cx.elicit("confirm", "Please confirm").await?;
    Ok(format!("{ticket}: confirmed={}", confirmed.ok))
}

async fn several(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let (user, greeting, roots) = tokio::join!(
        cx.elicit::<Name>("user_name", "What is your name?"),
        cx.sample("greeting", ask_model("Generate a greeting", 50)),
        cx.roots("client_roots"),
    );
    let (user, greeting, roots) = (user?, greeting?, roots?);
    Ok(format!("{} To: {}. Roots: {}", said(&greeting), user.name, list(&roots)))
}

#[derive(Deserialize, JsonSchema)]
struct Color {
    color: String,
}

async fn two_rounds(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let user: Name = cx.elicit("step1", "Step 1: What is your name?").await?;
    let favorite: Color = cx.elicit("step2", "Step 2: What is your favorite color?").await?;
    Ok(format!("{} likes {}.", user.name, favorite.color))
}

async fn capabilities(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let caps = cx.caps();
    let name = async {
        match caps.elicitation_form {
            true => cx.elicit::<Name>("user_name", "What is your name?").await.map(|user| user.name),
            false => Ok("nobody".into()),
        }
    };
    let greeting = async {
        match caps.sampling {
            true => {
                cx.sample("greeting", ask_model("Generate a greeting", 50)).await.map(|answer| said(&answer).to_owned())
            }
            false => Ok("Hello".into()),
        }
    };
    let roots = async {
        match caps.roots {
            true => cx.roots("client_roots").await.map(|roots| list(&roots)),
            false => Ok("none".into()),
        }
    };
    let (name, greeting, roots) = tokio::join!(name, greeting, roots);
    Ok(format!("{} To: {}. Roots: {}", greeting?, name?, roots?))
}

async fn needs_sampling(_: &(), cx: &Cx, _: NoArgs) -> Result<&'static str> {
    cx.require(cx.caps().sampling, "sampling", json!({}))?;
    Ok("The client can sample.")
}

#[derive(Deserialize, JsonSchema)]
struct Context {
    context: String,
}

async fn prompt(_: &(), cx: &Cx, _: NoArgs) -> Result<String> {
    let user: Context = cx.elicit("user_context", "What context should the prompt use?").await?;
    Ok(format!("Use this context: {}", user.context))
}
