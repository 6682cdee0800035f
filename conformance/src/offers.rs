//! Resources, prompts, and tools that change what is offered.

use crate::PNG;
use linchpin::Completion;
use linchpin::prelude::*;

/// Adds them.
pub(crate) fn add(server: Server) -> Server {
    changes(prompts(resources(server)))
}

#[derive(Deserialize, JsonSchema)]
struct ById {
    id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Data {
    id: String,
    template_test: bool,
    data: String,
}

fn resources(server: Server) -> Server {
    let text = Resource::new("test://static-text").name("static-text").description("A text that never changes.");
    let binary =
        Resource::new("test://static-binary").name("static-binary").description("An image that never changes.");
    let watched =
        Resource::new("test://watched-resource").name("watched-resource").description("A text to subscribe to.");
    let template = Resource::new("test://template/{id}/data").name("template").description("Data of any id.");
    server
        .resource(text.mime_type("text/plain"), |_: NoArgs| async {
            "This is the content of the static text resource."
        })
        .resource(binary.mime_type("image/png"), |_: NoArgs| async {
            ResourceContents::blob_base64("test://static-binary", PNG)
        })
        .resource(watched.mime_type("text/plain"), |_: NoArgs| async { "Nothing happened yet." })
        .resource(
            template
                .mime_type("application/json")
                .complete("id", |typed: Completion| async move { typed.filter(["123", "456"]) }),
            |at: ById| async move {
                let data = format!("Data for ID: {}", at.id);
                Json(Data { id: at.id, template_test: true, data })
            },
        )
}

#[derive(Deserialize, JsonSchema)]
struct TwoArguments {
    /// The first argument.
    arg1: String,
    /// The second argument.
    arg2: String,
}

#[derive(Deserialize, JsonSchema)]
struct WithResource {
    /// The URI that the embedded resource is to have.
    #[serde(rename = "resourceUri")]
    resource_uri: String,
}

fn prompts(server: Server) -> Server {
    let prompt = |name: &str, title: &str, description: &str| Prompt::new(name, description).title(title);
    server
        .prompt(prompt("test_simple_prompt", "Simple", "A prompt without arguments."), |_: NoArgs| async {
            "This is a simple prompt for testing."
        })
        .prompt(
            prompt("test_prompt_with_arguments", "Arguments", "A prompt with two arguments.")
                .complete("arg1", |typed: Completion| async move { typed.filter(["test", "testing", "tested"]) })
                .complete("arg2", |typed: Completion| async move { typed.filter(["value", "other"]) }),
            |q: TwoArguments| async move { format!("Prompt with arguments: arg1='{}', arg2='{}'", q.arg1, q.arg2) },
        )
        .prompt(
            prompt("test_prompt_with_embedded_resource", "Embedded resource", "A prompt that embeds a resource."),
            |q: WithResource| async move {
                let resource = ResourceContents::text(q.resource_uri, "Embedded resource content for testing.");
                vec![
                    PromptMessage::user(ContentBlock::resource(resource.with_mime_type("text/plain"))),
                    PromptMessage::user("Please process the embedded resource above."),
                ]
            },
        )
        .prompt(prompt("test_prompt_with_image", "Image", "A prompt with an image."), |_: NoArgs| async {
            vec![
                PromptMessage::user(ContentBlock::image_base64(PNG, "image/png")),
                PromptMessage::user("Please analyze the image above."),
            ]
        })
        .prompt(
            prompt("test_changing_prompt", "Changing", "Comes and goes; see test_trigger_prompt_change."),
            |_: NoArgs| async { "This prompt is offered at the moment." },
        )
}

fn changes(server: Server) -> Server {
    let trigger = |name: &str, title: &str, description: &str| {
        Tool::new(name, description).title(title).additive().open_world(false)
    };
    let (tools, prompts) = (server.tools(), server.prompts());
    server
        .tool(
            trigger("test_trigger_tool_change", "Change the tools", "Announces a change of the list of tools."),
            move |_: NoArgs| {
                // The definition stays as it is, so that every list of tools is the same.
                let changed = tools.update("test_trigger_tool_change", |tool| tool).is_ok();
                async move { format!("announced: {changed}") }
            },
        )
        .tool(
            trigger("test_trigger_prompt_change", "Change the prompts", "Takes a prompt away, or offers it again."),
            move |_: NoArgs| {
                let name = "test_changing_prompt";
                let changed = prompts.disable(name) == Ok(true) || prompts.enable(name) == Ok(true);
                async move { format!("announced: {changed}") }
            },
        )
}
