//! The tools of a table on a server: opening the engine for an API, and the way of a call through it.

use crate::arg::{Args, normalized};
use crate::call::Fields;
use crate::exchange::{Exchange, Network};
use crate::keep::Keep;
use crate::pace::Pace;
use crate::profile::{Pages, Profile, Scope};
use crate::rest::{FOUND, HIDDEN, Inner, Place, Rest};
use crate::shape::Position;
use crate::{Answer, Api, Ask, Call, Config};
use http::header::HeaderValue;
use linchpin::transport::web::Web;
use linchpin::{Cx, Server};
use linchpin_kit::{Secret, Service, ToolError, ToolOutput, ToolSet};
use serde_json::{Map, Value};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

impl Rest {
    /// Creates a server for this API, without connecting.
    ///
    /// # Errors
    /// When the configuration is invalid, or the key is missing.
    pub fn open(api: &'static Api, config: Config) -> Result<Rest, ToolError> {
        let profile = &api.profile;
        let places = places(profile, &config)?;
        let web = Web::new(config.web(places.iter().map(|place| &place.url))?);
        let network = Network { web, title: profile.title, body_bytes_max: config.body_bytes_max };
        Rest::open_over(api, config, network)
    }

    /// The same over something else than the network: a function from request to response, in tests.
    ///
    /// # Errors
    /// As [`Rest::open`].
    pub fn open_over(api: &'static Api, config: Config, exchange: impl Exchange) -> Result<Rest, ToolError> {
        let Api { profile: api, calls } = api;
        let (bases, key) = (places(api, &config)?, config.checked_key(api)?);
        if config.timeout_ms == 0 {
            return Err(ToolError::new("The timeout must not be 0"));
        }
        if !config.only.is_empty() && api.scope == Scope::None {
            return Err(ToolError::new(format!("{} has nothing that it could be restricted to", api.title)));
        }
        let texts = calls.iter().flat_map(Call::rows).flat_map(|row| [row.keep, row.beside]);
        let keeps = texts.map(|paths| Ok((paths, Keep::parse(paths.split_whitespace())?)));
        let keeps = keeps.collect::<Result<_, ToolError>>()?;
        let pace = Pace::of(api.service, bases[0].url.as_str(), key.as_ref().map_or("", Secret::reveal));
        let agent = format!("linchpin-{}/{}", api.service, env!("CARGO_PKG_VERSION"));
        let agent = HeaderValue::from_str(&agent).map_err(|_| ToolError::new("The name of the service is invalid"))?;
        let (exchange, cache) = (Box::new(exchange), Mutex::default());
        let (authorize, guard) = (None, None);
        let (writing, cannot_write) = Default::default();
        let inner = Inner {
            api,
            calls,
            config,
            bases,
            key,
            agent,
            exchange,
            authorize,
            guard,
            cache,
            pace,
            keeps,
            writing,
            cannot_write,
        };
        Ok(Rest { inner: Arc::new(inner), state: Arc::new(()), each_session: None })
    }

    /// Registers the enabled tools of this service, whose tools are [`specs`](crate::specs) of the API's table, on a server.
    ///
    /// # Errors
    /// When the configuration names an unknown tool.
    pub fn add_to<S: Send + Sync + 'static>(
        self,
        server: Server<S>,
        service: &Service,
    ) -> Result<Server<Rest>, ToolError> {
        Ok(self.tools_on(server, service)?.close())
    }

    /// The same, with the set still open: for a server that also has prompts and resources.
    ///
    /// # Errors
    /// As [`Rest::add_to`].
    pub fn tools_on<S: Send + Sync + 'static>(
        self,
        server: Server<S>,
        service: &Service,
    ) -> Result<ToolSet<Rest>, ToolError> {
        let (inner, api, choice) = (self.inner.clone(), self.inner.api, self.inner.config.tools.clone());
        let server = match self.each_session.clone() {
            None => server.state(self),
            Some(make) => server.session_state(move || Rest { state: make(), ..self.clone() }),
        };
        let has_scopes = inner.key_scopes().is_some();
        if has_scopes {
            // The list may change: clients are told so.
            let _ = server.tools();
        }
        let mut tools = ToolSet::open(server, service, &choice)?;
        if !api.instructions.is_empty() {
            tools = tools.instructions(api.instructions);
        }
        for call in inner.calls {
            let known: Arc<[_]> = call.args_of_methods(api.pages).into();
            let settle = move |mut request: linchpin::Call, next: linchpin::Next| {
                if let Some(json) = normalized(&request.arguments(), &known) {
                    request.set_arguments(json);
                }
                next.run(request)
            };
            let shaped = |tool: linchpin::Tool| {
                let tool = tool.input_schema(call.input_schema(api.pages)).output_schema(call.output_schema(api.items));
                tool.layer(settle)
            };
            // As an `Error`, which keeps the kind and the words of others.
            let handler = async move |rest: &Rest, cx: &Cx, args: Map<String, Value>| {
                let told = rest.call(call, args, cx).await;
                rest.inner.offer_what_the_key_allows(cx);
                told.map_err(linchpin::Error::from)
            };
            tools = tools.tool_as(&call.spec, shaped, handler);
        }
        if has_scopes {
            let writing = inner.calls.iter().filter(|call| call.spec.writes);
            let listed = writing.filter_map(|call| tools.listed(&call.spec).map(str::to_owned));
            let _ = inner.writing.set(listed.collect());
        }
        Ok(tools)
    }

    /// Makes the call of a row.
    async fn call(
        &self,
        call: &'static Call,
        mut given: Map<String, Value>,
        cx: &Cx,
    ) -> Result<ToolOutput<Value>, ToolError> {
        let inner = &*self.inner;
        let call = call.pick(&mut given)?;
        for (name, value) in &inner.config.defaults {
            if call.args.iter().any(|arg| arg.name == *name) && !given.contains_key(*name) {
                given.insert((*name).to_owned(), Value::from(value.as_str()));
            }
        }
        let mut args = Args::check(given, &call.all_args(inner.api.pages), call.ignored)?.with_cx(cx);
        let position = Position::of(call, &mut args, inner.api.pages)?;
        let chosen = if call.fields == Fields::None { None } else { args.0.remove("fields") };
        if let Some(guard) = &inner.guard {
            guard.before(self, call, &args).await?;
        }
        let early = match call.before {
            Some(before) => before(self, &mut args).await?,
            None => None,
        };
        let mut answer = match (early, call.run) {
            (Some(answer), _) => answer,
            (None, Some(run)) => run(self, args.clone()).await?,
            (None, None) => {
                let pages = call.pages.unwrap_or(inner.api.pages);
                let ask = position.apply(Ask::of(call, &args), pages)?;
                let current = if let Pages::Count { param, .. } = pages { ask.parameter(param) } else { None };
                let mut reply = self.send(ask).await?;
                let value = reply.parsed.take().map_or_else(|| reply.json(), Ok)?;
                Answer { value, reply: Some((reply.headers, current)), blocks: Vec::new() }
            }
        };
        if let Some(after) = call.after {
            after(self, &args, &mut answer.value).await?;
        }
        if let Some(guard) = &inner.guard {
            guard.after(call, &args, &answer.value);
        }
        let (keep, beside) = (&inner.keeps[call.keep], &inner.keeps[call.beside]);
        let chosen = match &chosen {
            Some(Value::Array(fields)) if !fields.is_empty() => {
                let chosen = Keep::parse(fields.iter().filter_map(Value::as_str))?;
                Some(if call.fields == Fields::Kept { keep.only(&chosen)? } else { chosen })
            }
            _ => None,
        };
        answer.shape(call, inner.api, (chosen.as_ref().unwrap_or(keep), beside), &position, &inner.config)
    }
}

impl Inner {
    /// Hides the tools that write, once the API has said that the key cannot.
    fn offer_what_the_key_allows(&self, cx: &Cx) {
        if self.cannot_write.compare_exchange(FOUND, HIDDEN, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        let tools = cx.server().tools();
        for name in self.writing.get().into_iter().flatten() {
            let _ = tools.disable(name);
        }
    }
}

/// All bases of an API, its own first.
fn places(api: &Profile, config: &Config) -> Result<Vec<Place>, ToolError> {
    let own = Place { name: "", url: config.base(api)?, key: api.key.place };
    let further = api.bases.iter().map(|base| {
        let url = config.further_base(api, base)?;
        Ok(Place { name: base.name, url, key: base.key.unwrap_or(api.key.place) })
    });
    std::iter::once(Ok(own)).chain(further).collect()
}
