//! `#[register]` through a server in memory: the attributes, as a client sees them.

#![cfg(feature = "macros")]
// Generated code must not cause warnings in a user's code.
#![deny(unused, nonstandard_style, deprecated)]

use linchpin::Completion;
use linchpin::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};

/// The peer of a server.
struct Peer {
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    out: WriteHalf<DuplexStream>,
    next: u64,
}

impl Peer {
    async fn of(server: Server) -> Peer {
        let (ours, theirs) = memory();
        tokio::spawn(async move { server.serve(ours).await.expect("it is put together rightly") });
        let (input, out) = tokio::io::split(theirs);
        let mut peer = Peer { lines: BufReader::new(input).lines(), out, next: 0 };
        let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "0" } });
        peer.ask("initialize", hello).await;
        peer.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        peer
    }

    async fn send(&mut self, message: Value) {
        self.out.write_all(format!("{message}\n").as_bytes()).await.expect("the server reads");
    }

    /// The response's `result`, or its `error`.
    async fn ask(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        self.send(json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params })).await;
        loop {
            let line = self.lines.next_line().await.expect("a line").expect("the server is there");
            let answer: Value = serde_json::from_str(&line).expect("JSON");
            if answer["id"] == self.next {
                let error = answer["error"].clone();
                return if error.is_null() { answer["result"].clone() } else { error };
            }
        }
    }

    /// The text of a tool's result.
    async fn call(&mut self, name: &str, arguments: Value) -> String {
        let answer = self.ask("tools/call", json!({ "name": name, "arguments": arguments })).await;
        answer["content"][0]["text"].as_str().map_or_else(|| answer.to_string(), str::to_owned)
    }

    /// The items of `method` under `key`, by the member `by`.
    async fn list(&mut self, method: &str, key: &str, by: &str) -> BTreeMap<String, Value> {
        let answer = self.ask(method, json!({})).await;
        let items = answer[key].as_array().unwrap_or_else(|| panic!("{answer}")).clone();
        items.into_iter().map(|item| (item[by].as_str().expect("a name").to_owned(), item)).collect()
    }
}

struct Weather {
    unit: &'static str,
}

#[derive(Deserialize, JsonSchema)]
struct Forecast {
    /// City name.
    city: String,
    days: Option<u8>,
}

#[derive(Serialize, JsonSchema)]
struct Report {
    city: String,
    days: u8,
}

#[derive(Deserialize, JsonSchema)]
struct CityDay {
    city: String,
    day: u16,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Depth {
    Low,
    High,
}

async fn shout(call: Call, next: Next) -> Reply {
    match call.arguments().contains("forbidden") {
        true => call.refuse("not allowed"),
        false => next.run(call).await,
    }
}

async fn cities(asked: Completion) -> Vec<String> {
    asked.filter(["Oslo", "Bergen", "Osaka"])
}

#[register]
impl Weather {
    /// Daily forecast
    /// for a city.
    ///
    /// In the unit of the server.
    #[tool(read_only, title = "Forecast", alias = "old_forecast", layer = shout, open_world = false)]
    async fn forecast(&self, q: Forecast) -> Result<Json<Report>> {
        Ok(Json(Report { city: q.city, days: q.days.unwrap_or(1) }))
    }

    /// Deletes days.
    #[tool(name = "purge.days", destructive, idempotent, description = format!("Deletes {}", "recorded days."))]
    async fn purge(&self, cx: &Cx, Forecast { city, days }: Forecast) -> Result<String> {
        cx.progress(1.0, None);
        Ok(format!("{city}: {days:?}"))
    }

    /// Adds.
    #[tool]
    async fn add(
        &self,
        /// The first number.
        a: f64,
        /// The second number; nothing when left out.
        b: Option<f64>,
        #[serde(default, rename = "timesTen")] times_ten: bool,
    ) -> String {
        let sum = a + b.unwrap_or_default();
        format!("{}{}", if times_ten { sum * 10.0 } else { sum }, self.unit)
    }

    #[tool(writes)]
    fn scale(&self, cx: &Cx, #[schemars(range(max = 10))] factor: i64, mut tags: Vec<String>) -> Result<String> {
        tags.sort();
        Ok(format!("{factor} {tags:?} {}", cx.client().is_some()))
    }

    #[tool]
    fn ping(&self) -> &'static str {
        "pong"
    }

    #[tool]
    async fn pong(&self, _cx: &Cx) -> String {
        self.unit.into()
    }

    #[tool(additive)]
    async fn nothing() {}

    #[tool]
    async fn free(q: Forecast) -> String {
        q.city
    }

    #[tool]
    fn free_cx(cx: &Cx, q: Forecast) -> String {
        format!("{} {}", q.city, cx.client().is_some())
    }

    /// A parameter with documentation is one argument, whatever its type is called.
    #[tool]
    async fn dig(
        &self,
        /// How deep.
        depth: Depth,
    ) -> String {
        match depth {
            Depth::Low => "low".into(),
            Depth::High => "high".into(),
        }
    }

    #[tool(name = "type")]
    async fn r#type(&self, r#in: String) -> String {
        Self::helper(&r#in)
    }

    #[cfg(any())]
    #[tool]
    async fn never(&self, a: DoesNotExist) -> String {
        a.into()
    }

    #[cfg(not(any()))]
    #[tool]
    async fn always(&self, a: u8) -> String {
        a.to_string()
    }

    fn helper(text: &str) -> String {
        text.to_uppercase()
    }

    /// The page of a day.
    #[resource("weather://{city}/{day}", mime_type = "text/markdown", cache(60_000, public), complete(city = cities))]
    async fn page(&self, at: CityDay) -> Result<Markdown> {
        Ok(Markdown(format!("# {} on day {}", at.city, at.day)))
    }

    #[resource("hours://{city}/{hour}{?unit}", name = "hours", title = "By the hour")]
    fn hour(&self, city: String, hour: u8, unit: Option<String>) -> String {
        format!("{city} {} {unit:?}", hour + 1)
    }

    #[resource("weather://units", size = 2)]
    async fn units(&self) -> String {
        self.unit.into()
    }

    /// A morning briefing.
    #[prompt(title = "Briefing", complete(city = cities))]
    async fn brief(
        &self,
        /// Where.
        city: String,
        days: Option<u8>,
    ) -> String {
        format!("Weather of {city} for {} days", days.unwrap_or(1))
    }

    #[prompt]
    fn plain() -> Vec<PromptMessage> {
        vec![PromptMessage::user("hello")]
    }
}

async fn weather() -> Peer {
    Peer::of(Server::new("weather", "1.0").with(Weather { unit: "°C" })).await
}

#[tokio::test]
async fn tools_are_listed_with_what_the_attributes_and_comments_say() {
    let tools = weather().await.list("tools/list", "tools", "name").await;
    let names: Vec<&str> = tools.keys().map(String::as_str).collect();
    let want = [
        "add",
        "always",
        "dig",
        "forecast",
        "free",
        "free_cx",
        "nothing",
        "ping",
        "pong",
        "purge.days",
        "scale",
        "type",
    ];
    assert_eq!(names, want);
    let cases = [
        ("forecast", "/title", json!("Forecast")),
        ("forecast", "/description", json!("Daily forecast for a city.\n\nIn the unit of the server.")),
        ("forecast", "/annotations", json!({ "readOnlyHint": true, "openWorldHint": false })),
        ("forecast", "/inputSchema/properties/city/description", json!("City name.")),
        ("forecast", "/outputSchema/required", json!(["city", "days"])),
        ("purge.days", "/description", json!("Deletes recorded days.")),
        (
            "purge.days",
            "/annotations",
            json!({ "readOnlyHint": false, "destructiveHint": true, "idempotentHint": true }),
        ),
        ("nothing", "/annotations", json!({ "readOnlyHint": false, "destructiveHint": false })),
        ("nothing", "/inputSchema", json!({ "type": "object", "properties": {} })),
        ("add", "/inputSchema/properties/a", json!({ "type": "number", "description": "The first number." })),
        ("add", "/inputSchema/properties/b/description", json!("The second number; nothing when left out.")),
        ("add", "/inputSchema/properties/timesTen", json!({ "type": "boolean" })),
        ("add", "/inputSchema/required", json!(["a"])),
        ("scale", "/inputSchema/properties/factor/maximum", json!(10)),
        ("dig", "/inputSchema/properties/depth/description", json!("How deep.")),
        ("type", "/inputSchema/required", json!(["in"])),
    ];
    for (tool, pointer, want) in cases {
        assert_eq!(tools[tool].pointer(pointer), Some(&want), "{tool} {pointer}: {}", tools[tool]);
    }
    assert_eq!(tools["ping"].get("description"), None);
}

#[tokio::test]
async fn every_shape_of_method_is_called() {
    let mut peer = weather().await;
    let city = json!({ "city": "Oslo", "days": 2 });
    let cases = [
        ("forecast", city.clone(), r#"{"city":"Oslo","days":2}"#),
        ("old_forecast", city.clone(), r#"{"city":"Oslo","days":2}"#),
        ("forecast", json!({ "city": "forbidden" }), "not allowed"),
        ("purge.days", city.clone(), "Oslo: Some(2)"),
        ("add", json!({ "a": 1, "b": 2.5 }), "3.5°C"),
        ("add", json!({ "a": 1 }), "1°C"),
        ("add", json!({ "a": 1, "timesTen": true, "more": "is ignored" }), "10°C"),
        ("scale", json!({ "factor": 3, "tags": ["b", "a"] }), r#"3 ["a", "b"] true"#),
        ("ping", json!({}), "pong"),
        ("pong", json!({}), "°C"),
        ("nothing", json!({}), r#"{"content":[]}"#),
        ("free", city.clone(), "Oslo"),
        ("free_cx", city, "Oslo true"),
        ("dig", json!({ "depth": "high" }), "high"),
        ("type", json!({ "in": "up" }), "UP"),
        ("always", json!({ "a": 7 }), "7"),
    ];
    for (tool, arguments, want) in cases {
        assert_eq!(peer.call(tool, arguments.clone()).await, want, "{tool} {arguments}");
    }
    for (arguments, want) in [(json!({ "a": "x" }), "/a: expected a number"), (json!({}), "`a`")] {
        let text = peer.call("add", arguments.clone()).await;
        assert!(text.contains(want), "{arguments}: {text}");
    }
    let text = peer.call("scale", json!({ "factor": 11, "tags": [] })).await;
    assert!(text.contains("factor") && text.contains("10"), "{text}");
}

#[tokio::test]
async fn resources_and_templates_are_listed_read_and_completed() {
    let mut peer = weather().await;
    let resources = peer.list("resources/list", "resources", "uri").await;
    assert_eq!(resources["weather://units"]["name"], "units");
    assert_eq!(resources["weather://units"]["size"], 2);
    let templates = peer.list("resources/templates/list", "resourceTemplates", "uriTemplate").await;
    let page = &templates["weather://{city}/{day}"];
    assert_eq!((&page["name"], &page["description"]), (&json!("page"), &json!("The page of a day.")));
    let hours = &templates["hours://{city}/{hour}{?unit}"];
    assert_eq!((&hours["name"], &hours["title"]), (&json!("hours"), &json!("By the hour")));
    let cases = [
        ("weather://units", json!({ "uri": "weather://units", "text": "°C" })),
        (
            "weather://Oslo/3",
            json!({ "uri": "weather://Oslo/3", "mimeType": "text/markdown", "text": "# Oslo on day 3" }),
        ),
        ("hours://Oslo/4", json!({ "uri": "hours://Oslo/4", "text": "Oslo 5 None" })),
        ("hours://Oslo/4?unit=K", json!({ "uri": "hours://Oslo/4?unit=K", "text": "Oslo 5 Some(\"K\")" })),
    ];
    for (uri, want) in cases {
        let answer = peer.ask("resources/read", json!({ "uri": uri })).await;
        assert_eq!(answer["contents"][0], want, "{answer}");
    }
    let asked = json!({ "ref": { "type": "ref/resource", "uri": "weather://{city}/{day}" }, "argument": { "name": "city", "value": "os" } });
    let answer = peer.ask("completion/complete", asked).await;
    assert_eq!(answer["completion"]["values"], json!(["Oslo", "Osaka"]), "{answer}");
}

#[tokio::test]
async fn prompts_are_listed_got_and_completed() {
    let mut peer = weather().await;
    let prompts = peer.list("prompts/list", "prompts", "name").await;
    let brief = &prompts["brief"];
    assert_eq!((&brief["title"], &brief["description"]), (&json!("Briefing"), &json!("A morning briefing.")));
    let arguments =
        json!([{ "name": "city", "description": "Where.", "required": true }, { "name": "days", "required": false }]);
    assert_eq!(brief["arguments"], arguments);
    let answer =
        peer.ask("prompts/get", json!({ "name": "brief", "arguments": { "city": "Oslo", "days": "3" } })).await;
    assert_eq!(answer["messages"][0]["content"]["text"], "Weather of Oslo for 3 days", "{answer}");
    let answer = peer.ask("prompts/get", json!({ "name": "plain" })).await;
    assert_eq!(answer["messages"][0]["content"]["text"], "hello", "{answer}");
    let asked =
        json!({ "ref": { "type": "ref/prompt", "name": "brief" }, "argument": { "name": "city", "value": "b" } });
    let answer = peer.ask("completion/complete", asked).await;
    assert_eq!(answer["completion"]["values"], json!(["Bergen"]), "{answer}");
}

mod elsewhere {
    // Another name for the facade, without its prelude.
    pub(crate) mod renamed {
        pub(crate) use linchpin::*;
    }
    pub(crate) struct Store<T, const N: usize> {
        pub(crate) items: [T; N],
    }

    #[renamed::register(crate = renamed)]
    impl<T: std::fmt::Display, const N: usize> Store<T, N> {
        #[tool]
        async fn item(&self, index: usize) -> String {
            self.items.get(index).map_or_else(|| format!("there are {N}"), ToString::to_string)
        }
    }
}

#[tokio::test]
async fn a_generic_impl_and_a_renamed_crate_are_offered_and_states_add_up() {
    let server = Server::new("both", "1").with(Weather { unit: "K" }).with(elsewhere::Store { items: [1.5, 2.5] });
    let mut peer = Peer::of(server).await;
    assert_eq!(peer.call("item", json!({ "index": 1 })).await, "2.5");
    assert_eq!(peer.call("item", json!({ "index": 2 })).await, "there are 2");
    assert_eq!(peer.call("pong", json!({})).await, "K");
}

macro_rules! counter {
    ($state:ident, $method:ident, $by:ty, $args:ty) => {
        struct $state<T>(T);

        #[register]
        impl<T: From<u16> + std::ops::Add<Output = T> + std::fmt::Display + Copy> $state<T> {
            #[tool]
            async fn $method(&self, by: $by) -> String {
                (self.0 + by.into()).to_string()
            }

            #[tool(name = "whole")]
            async fn of_a_struct(&self, cx: &Cx, args: $args) -> String {
                format!("{} {}", args.city, cx.is_cancelled())
            }
        }
    };
}
counter!(Counter, count_up, u16, Forecast);

#[tokio::test]
async fn an_impl_written_by_another_macro_is_offered() {
    let mut peer = Peer::of(Server::new("counter", "1").with(Counter(40u64))).await;
    assert_eq!(peer.call("count_up", json!({ "by": 2 })).await, "42");
    assert_eq!(peer.call("whole", json!({ "city": "Oslo" })).await, "Oslo false");
}

struct Twice;

#[register]
impl Twice {
    #[tool]
    async fn ping(&self) -> String {
        String::new()
    }
}

#[tokio::test]
async fn a_name_taken_by_another_state_is_reported_with_both_methods_places() {
    let (ours, _theirs) = memory();
    let failed = Server::new("both", "1").with(Weather { unit: "K" }).with(Twice).serve(ours).await;
    let failed = failed.expect_err("`ping` is there twice").to_string();
    assert!(failed.contains("`ping`"), "{failed}");
    let source: Vec<&str> = include_str!("register.rs").lines().collect();
    let places: Vec<&str> = failed.split("register.rs:").skip(1).collect();
    assert_eq!(places.len(), 2, "{failed}");
    for place in places {
        let mut numbers = place.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse::<usize>().expect("a number"));
        let (line, column) = (numbers.next().expect("a line"), numbers.next().expect("a column"));
        assert!(source[line - 1][column - 1..].starts_with("ping("), "{failed}");
    }
}
