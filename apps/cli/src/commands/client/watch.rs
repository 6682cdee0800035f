//! `linchpin watch`: prints notifications as they arrive.

use super::plain::Plain;
use crate::client::session;
use crate::fail::Failure;
use crate::record::redact::Redactor;
use crate::show::out::{Out, note};
use clap::Args;
use linchpin::client::{ChangeFilter, Tap, Traffic};
use linchpin::types::logging::LoggingLevel;
use linchpin_core::exact;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// Subscribe to this resource. May be repeated.
    #[arg(long, value_name = "URI")]
    uri: Vec<String>,

    /// Show log messages of at least this level.
    #[arg(long, value_name = "LEVEL", value_parser = super::call::level, default_value = "info")]
    log_level: LoggingLevel,

    /// Stop after this many notifications.
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,

    /// Stop after this duration, for example 10 or 2m.
    #[arg(long, value_name = "SECONDS", value_parser = crate::duration::read)]
    duration: Option<Duration>,

    #[command(flatten)]
    plain: Plain,
}

/// Prints notifications as they pass.
struct Printer {
    begun: Instant,
    json: bool,
    left: std::sync::Mutex<Option<u64>>,
    done: Arc<Notify>,
    redactor: Redactor,
}

impl Tap for Printer {
    fn saw(&self, event: Traffic<'_>) {
        let Traffic::Heard(message) = event else { return };
        let Ok(message) = exact::read(message) else { return };
        let messages = match message {
            Value::Array(batch) => batch,
            one => vec![one],
        };
        for mut message in messages {
            let Some(method) = message.get("method").and_then(Value::as_str).map(str::to_owned) else { continue };
            if message.get("id").is_some() || method == "notifications/subscriptions/acknowledged" {
                continue;
            }
            let mut params = message.get_mut("params").map(Value::take).unwrap_or(Value::Null);
            self.redactor.value(&mut params);
            if self.print(&method, params).is_err() {
                // Standard output is closed.
                self.done.notify_one();
                return;
            }
        }
    }
}

impl Printer {
    fn print(&self, method: &str, params: Value) -> std::io::Result<()> {
        let mut left = self.left.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        match &mut *left {
            Some(0) => return Ok(()),
            Some(n) => *n -= 1,
            None => {}
        }
        let (since, mut out) = (self.begun.elapsed(), Out::new());
        match self.json {
            true => out.json_line(&json!({ "ms": since.as_millis() as u64, "method": method, "params": params }))?,
            false => {
                let mut params = params;
                if let Some(members) = params.as_object_mut() {
                    members.remove("_meta");
                }
                let shown = match &params {
                    Value::Null => String::new(),
                    Value::Object(members) if members.is_empty() => String::new(),
                    params => format!(" {params}"),
                };
                let at = out.style.dim(&format!("{:9.3}", since.as_secs_f64()));
                out.line(format!("{at} {}{shown}", out.style.bold(method)))?;
            }
        }
        out.flush()?;
        if *left == Some(0) {
            self.done.notify_one();
        }
        Ok(())
    }
}

pub(crate) fn run(args: WatchArgs) -> Result<(), Failure> {
    let target = args.plain.resolve()?;
    let done = Arc::new(Notify::new());
    let printer = Printer {
        begun: Instant::now(),
        json: args.plain.talk.json,
        left: std::sync::Mutex::new(args.count),
        done: done.clone(),
        redactor: target.redactor.clone(),
    };
    session::run_tapped(
        &args.plain.talk,
        target,
        vec![Box::new(printer)],
        |client| client.on_log(args.log_level, |_| {}),
        async |session| {
            let connection = &session.connection;
            let mut interests = ChangeFilter::lists();
            for uri in &args.uri {
                interests = interests.resource(uri);
            }
            let changes = match connection.listen(interests).await {
                Ok(changes) => Some(changes),
                Err(e) if args.uri.is_empty() => {
                    note(format!("note: the server does not send list_changed notifications: {e}"));
                    None
                }
                Err(e) => return Err(session.told(&e)),
            };
            note(format!("watching {}; press Ctrl-C to stop", session.target));
            let ended = async {
                let Some(mut changes) = changes else { return std::future::pending().await };
                // Notifications are printed by the tap; this ends with the connection.
                while changes.next().await.is_some() {}
            };
            let over = async {
                match args.duration {
                    Some(time) => tokio::time::sleep(time).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = done.notified() => Ok(()),
                () = over => Ok(()),
                stopped = tokio::signal::ctrl_c() => stopped.map_err(Failure::new),
                () = ended => Err(connection.lost().map_or_else(
                    || Failure::new("the connection was closed").exit(crate::exit::Exit::Protocol),
                    |e| session.told(&e),
                )),
            }
        },
    )
}
