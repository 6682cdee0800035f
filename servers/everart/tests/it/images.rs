//! From the prompt to the images, by a clock that the tests control.

use bytes::Bytes;
use http::{Request, Response};
use linchpin::client::{Client, Connection};
use linchpin::prelude::in_process;
use linchpin::testing::Clock;
use linchpin::{BoxFuture, Server};
use linchpin_everart::{Config, EverArt, Loader};
use linchpin_kit::{Secret, ToolError};
use linchpin_rest::testing::call;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

type Log = Arc<Mutex<Vec<String>>>;

/// Loads a small image, or what a test says, and notes the addresses.
struct Images(Log, &'static [u8]);

impl Loader for Images {
    fn load<'a>(&'a self, url: &'a str, _: usize) -> BoxFuture<'a, Result<Bytes, ToolError>> {
        self.0.lock().unwrap().push(url.to_owned());
        let bytes = Bytes::from_static(self.1);
        Box::pin(async move { Ok(bytes) })
    }
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

fn generation(id: &str, status: &str, url: Option<&str>) -> Value {
    json!({ "id": id, "status": status, "image_url": url })
}

/// A server whose API answers by the number of the request and its path; a number is a status without a body.
async fn served(
    inline: bool,
    bytes: &'static [u8],
    api: impl Fn(usize, &str) -> Value + Send + Sync + 'static,
) -> (Connection, Log, Log) {
    let (asked, loaded) = (Log::default(), Log::default());
    let log = asked.clone();
    let exchange = move |request: Request<Bytes>| {
        let mut log = log.lock().unwrap();
        let path = request.uri().path().to_owned();
        let answer = api(log.len(), &path);
        log.push(path);
        match answer.as_u64() {
            Some(status) => Response::builder().status(status as u16).body(Bytes::new()).unwrap(),
            None => Response::new(Bytes::from(answer.to_string())),
        }
    };
    let config = Config::default().with(|config| {
        config.inline_images = inline;
        config.api.key = Some(Secret::new("k"));
    });
    let everart = EverArt::open_over(config, exchange, Images(loaded.clone(), bytes)).unwrap();
    let server = everart.add_to(Server::new("test", "0")).unwrap();
    let client = Client::new("test", "0").timeout(Duration::ZERO).check_results(true);
    (client.connect(in_process(server)).await.unwrap(), asked, loaded)
}

async fn listed(connection: &Connection) -> Value {
    let read = connection.read("everart://images").await.unwrap();
    let read = serde_json::to_value(&*read).unwrap();
    assert_eq!(read["contents"][0]["mimeType"], "application/json");
    serde_json::from_str(read["contents"][0]["text"].as_str().unwrap()).unwrap()
}

#[tokio::test]
async fn all_images_are_there_with_the_published_words_and_none_is_opened_or_loaded() {
    let (connection, asked, loaded) = served(false, PNG, |n, _| match n {
        0 => json!({ "generations": [generation("a", "STARTING", None), generation("b", "STARTING", None)] }),
        1 => json!({ "generation": generation("a", "SUCCEEDED", Some("https://cdn.everart.ai/a.png")) }),
        _ => json!({ "generation": generation("b", "SUCCEEDED", Some("https://cdn.everart.ai/b.png")) }),
    })
    .await;
    assert_eq!(listed(&connection).await, json!({ "images": [] }));
    let told = call(&connection, "generate_image", json!({ "prompt": "a cat", "image_count": 2 })).await;
    assert_eq!(
        told.text,
        "Image generated successfully!\n\nGeneration details:\n- Model: 5000\n- Prompt: \"a cat\"\n\
         - Image URL: https://cdn.everart.ai/a.png\n- Image URL: https://cdn.everart.ai/b.png\n\n\
         You can also click the URL above to view the image again."
    );
    assert_eq!(*asked.lock().unwrap(), ["/v1/models/5000/generations", "/v1/generations/a", "/v1/generations/b"]);
    assert!(loaded.lock().unwrap().is_empty());
    assert_eq!(listed(&connection).await["images"], told.structured["images"]);
    assert_eq!(told.structured["images"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn while_an_image_is_made_there_is_progress_and_a_look_each_second() {
    let _clock = Clock::pause();
    let (connection, asked, _) = served(false, PNG, |n, _| match n {
        0 => json!({ "generations": [generation("a", "STARTING", None)] }),
        1..5 => json!({ "generation": generation("a", "PROCESSING", None) }),
        _ => json!({ "generation": generation("a", "SUCCEEDED", Some("https://cdn.everart.ai/a.png")) }),
    })
    .await;
    let heard: Arc<Mutex<Vec<f64>>> = Arc::default();
    let log = heard.clone();
    let call = connection.call("generate_image", json!({ "prompt": "x" }));
    let begin = tokio::time::Instant::now();
    let answer = call.on_progress(move |progress| log.lock().unwrap().push(progress.progress)).await.unwrap();
    assert!(!answer.is_error());
    assert_eq!((begin.elapsed().as_secs(), asked.lock().unwrap().len()), (4, 6));
    assert_eq!(*heard.lock().unwrap(), [1.0, 2.0, 3.0, 4.0]);
}

#[tokio::test]
async fn what_is_never_finished_is_waited_for_two_minutes_and_may_be_read_later() {
    let _clock = Clock::pause();
    let (connection, asked, _) = served(false, PNG, |n, _| match n {
        0 => json!({ "generations": [generation("a", "STARTING", None)] }),
        1..200 => json!({ "generation": generation("a", "PROCESSING", None) }),
        _ => json!({ "generation": generation("a", "SUCCEEDED", Some("https://cdn.everart.ai/a.png")) }),
    })
    .await;
    let begin = tokio::time::Instant::now();
    let told = call(&connection, "generate_image", json!({ "prompt": "x" })).await;
    assert_eq!((begin.elapsed().as_secs(), told.kind.as_str()), (120, "timeout"));
    assert!(told.text.starts_with("Error: 1 of 1 images were not finished within 120 s\nHint: "), "{}", told.text);
    assert_eq!(asked.lock().unwrap().len(), 122);
    assert_eq!(listed(&connection).await["images"][0]["status"], "PROCESSING");
    asked.lock().unwrap().resize(200, String::new());
    assert_eq!(listed(&connection).await["images"][0]["url"], "https://cdn.everart.ai/a.png");
    let before = asked.lock().unwrap().len();
    listed(&connection).await;
    assert_eq!(asked.lock().unwrap().len(), before, "what is finished is not asked for again");
}

#[tokio::test]
async fn an_image_that_is_paid_for_is_there_though_another_one_is_never_finished() {
    let _clock = Clock::pause();
    let (connection, ..) = served(false, PNG, |n, path| match (n, path) {
        (0, _) => json!({ "generations": [generation("a", "STARTING", None), generation("b", "STARTING", None)] }),
        (_, "/v1/generations/a") => {
            json!({ "generation": generation("a", "SUCCEEDED", Some("https://cdn.everart.ai/a.png")) })
        }
        _ => json!({ "generation": generation("b", "PROCESSING", None) }),
    })
    .await;
    let told = call(&connection, "generate_image", json!({ "prompt": "x", "image_count": 2 })).await;
    assert!(!told.failed, "{}", told.result);
    let lines = "- Image URL: https://cdn.everart.ai/a.png\n- Not finished: PROCESSING (generation b)\n";
    assert!(told.text.contains(lines) && told.text.contains("everart://images"), "{}", told.text);
    assert_eq!(told.structured["images"][1]["id"], "b");
}

#[tokio::test]
async fn a_look_that_fails_does_not_lose_what_is_paid_for() {
    let _clock = Clock::pause();
    let (connection, asked, _) = served(false, PNG, |n, path| match (n, path) {
        (0, _) => json!({ "generations": [generation("a", "STARTING", None), generation("b", "STARTING", None)] }),
        (1..=2, _) => json!(500),
        (3..=4, _) => json!({ "odd": true }),
        (_, path) => {
            let id = &path[path.len() - 1..];
            json!({ "generation": generation(id, "SUCCEEDED", Some("https://cdn.everart.ai/x.png")) })
        }
    })
    .await;
    let told = call(&connection, "generate_image", json!({ "prompt": "x", "image_count": 2 })).await;
    assert!(!told.failed && told.text.matches("- Image URL: ").count() == 2, "{}", told.result);
    assert_eq!(asked.lock().unwrap().len(), 7);
}

#[tokio::test]
async fn a_generation_that_is_gone_is_not_asked_for_again_and_others_are() {
    let _clock = Clock::pause();
    let (connection, asked, _) = served(false, PNG, |n, path| match (n, path) {
        (0, _) => json!({ "generations": [generation("a", "STARTING", None), generation("b", "STARTING", None)] }),
        (1..5, "/v1/generations/a") => json!({ "generation": generation("a", "PROCESSING", None) }),
        (_, "/v1/generations/a") => {
            json!({ "generation": generation("a", "SUCCEEDED", Some("https://cdn.everart.ai/a.png")) })
        }
        _ => json!(404),
    })
    .await;
    let told = call(&connection, "generate_image", json!({ "prompt": "x", "image_count": 2 })).await;
    assert!(!told.failed && told.text.contains("/a.png\n- Not finished: STARTING (generation b)\n"), "{}", told.result);
    assert_eq!(asked.lock().unwrap().iter().filter(|path| path.ends_with("/b")).count(), 1);
}

#[tokio::test]
async fn where_no_image_is_known_to_be_there_the_error_names_the_generations() {
    let _clock = Clock::pause();
    for (status, kind, looks) in [(401, "denied", 2), (500, "upstream", 2 * 121)] {
        let (connection, asked, _) = served(false, PNG, move |n, _| match n {
            0 => json!({ "generations": [generation("a", "STARTING", None), generation("b", "STARTING", None)] }),
            _ => json!(status),
        })
        .await;
        let told = call(&connection, "generate_image", json!({ "prompt": "x", "image_count": 2 })).await;
        assert!(told.failed && told.text.contains("everart://images"), "{}", told.result);
        assert_eq!((told.kind.as_str(), asked.lock().unwrap().len()), (kind, 1 + looks));
        let detail = told.result["content"][1]["text"].as_str().unwrap();
        assert!(detail.starts_with("Generations: a, b"), "{detail}");
    }
}

#[tokio::test]
async fn who_cancels_is_not_waited_for() {
    let clock = Clock::pause();
    let (connection, asked, _) = served(false, PNG, |n, _| match n {
        0 => json!({ "generations": [generation("a", "STARTING", None)] }),
        _ => json!({ "generation": generation("a", "PROCESSING", None) }),
    })
    .await;
    let call = connection.call("generate_image", json!({ "prompt": "x" }));
    assert!(call.timeout(Duration::from_secs(10)).await.unwrap_err().is_timeout());
    clock.advance(Duration::from_secs(1)).await;
    let before = asked.lock().unwrap().len();
    clock.advance(Duration::from_secs(60)).await;
    assert_eq!(asked.lock().unwrap().len(), before);
}

#[tokio::test]
async fn what_failed_is_an_error_and_what_failed_in_part_is_told() {
    let (connection, ..) = served(false, PNG, |n, _| match n {
        0 => json!({ "generations": [generation("a", "FAILED", None)] }),
        _ => json!({ "generations": [
            generation("b", "CANCELED", None), generation("c", "SUCCEEDED", Some("https://cdn.everart.ai/c.png")),
        ] }),
    })
    .await;
    let told = call(&connection, "generate_image", json!({ "prompt": "x" })).await;
    assert_eq!((told.text.as_str(), told.kind.as_str()), ("Error: EverArt made no image", "upstream"));
    assert_eq!(told.result["content"][1]["text"], "FAILED");
    let told = call(&connection, "generate_image", json!({ "prompt": "x", "image_count": 2 })).await;
    assert!(!told.failed && told.text.contains("- No image: CANCELED\n- Image URL: https://cdn.everart.ai/c.png\n"));
}

#[tokio::test]
async fn images_are_loaded_from_named_hosts_only_and_only_if_they_are_images() {
    for (url, bytes, loads, kind) in [
        ("https://cdn.everart.ai/a.png", PNG, 1, "image"),
        ("https://everart.ai/a.png", b"\xff\xd8\xff\xe0", 1, "image"),
        ("https://cdn.everart.ai/a.png", b"<html>", 1, "text"),
        ("https://evil.example/a.png", PNG, 0, "text"),
        ("https://everart.ai.evil.example/a.png", PNG, 0, "text"),
        ("https://cdn.everart.ai@evil.example/a.png", PNG, 0, "text"),
        ("https://127.0.0.1/a.png", PNG, 0, "text"),
    ] as [(&'static str, &'static [u8], usize, &str); 7]
    {
        let (connection, _, loaded) =
            served(true, bytes, move |_, _| json!({ "generations": [generation("a", "SUCCEEDED", Some(url))] })).await;
        let told = call(&connection, "generate_image", json!({ "prompt": "x" })).await;
        assert_eq!(loaded.lock().unwrap().len(), loads, "{url}");
        assert_eq!(told.result["content"][1]["type"], kind, "{url}: {}", told.result);
    }
    for url in ["http://127.0.0.1/a.png", "http://cdn.everart.ai/a.png", "file:///etc/passwd", "javascript:alert(1)"] {
        let (connection, _, loaded) =
            served(true, PNG, move |_, _| json!({ "generations": [generation("a", "SUCCEEDED", Some(url))] })).await;
        let told = call(&connection, "generate_image", json!({ "prompt": "x" })).await;
        assert!(told.failed && !told.result.to_string().contains(url), "{}", told.result);
        assert!(loaded.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn sessions_do_not_see_the_images_of_others() {
    let api = |_: Request<Bytes>| {
        let made = json!({ "generations": [generation("a", "SUCCEEDED", Some("https://cdn.everart.ai/a.png"))] });
        Response::new(Bytes::from(made.to_string()))
    };
    let config = Config::default().with(|config| config.api.key = Some(Secret::new("k")));
    let everart = EverArt::open_over(config, api, Images(Log::default(), PNG)).unwrap();
    let server = || everart.clone().add_to(Server::new("test", "0")).unwrap();
    let connect = || async { Client::new("test", "0").connect(in_process(server())).await.unwrap() };
    let (one, other) = (connect().await, connect().await);
    call(&one, "generate_image", json!({ "prompt": "x" })).await;
    assert_eq!(listed(&one).await["images"].as_array().unwrap().len(), 1);
    assert_eq!(listed(&other).await, json!({ "images": [] }));
}

#[tokio::test]
async fn a_look_that_fails_says_that_the_images_may_come_nevertheless() {
    let _clock = Clock::pause();
    let (connection, ..) = served(false, PNG, |n, _| match n {
        0 => json!({ "generations": [generation("a", "STARTING", None)] }),
        _ => json!({ "generation": {} }),
    })
    .await;
    let told = call(&connection, "generate_image", json!({ "prompt": "x" })).await;
    assert_eq!(told.kind, "upstream");
    let words = "Error: EverArt answered without the state of a generation\nHint: The images may be finished later";
    assert!(told.text.starts_with(words), "{}", told.text);
    assert_eq!(listed(&connection).await["images"][0]["status"], "STARTING");
}
