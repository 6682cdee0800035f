//! A typed client: a struct for a server, with its tools as methods.
//!
//!     cargo run -p linchpin-examples --example typed
//!
//! The server runs inside this program; with `child("weather-server")?` or `remote("https://…")?` in its place it can be
//! any server.

use linchpin::client::{BoxError, Error as ClientError, Step};
use linchpin::prelude::*;
use std::io::Write;
use std::time::Duration;

/// The server, as the rest of the program sees it.
struct Weather(Connection);

#[derive(Serialize, Deserialize, JsonSchema, Debug)]
struct Forecast {
    city: String,
    highs: Vec<f64>,
}

impl Weather {
    async fn connect() -> Result<Weather, ClientError> {
        let client = Client::new("typed", "1.0").timeout(Duration::from_secs(5)).check_results(true);
        Ok(Weather(client.connect(in_process(server())).await?))
    }

    async fn forecast(&self, city: &str, days: u8) -> Result<Forecast, ClientError> {
        #[derive(Serialize)]
        struct Ask<'a> {
            city: &'a str,
            days: u8,
        }
        self.0.call("forecast", Ask { city, days }).await?.json()
    }

    /// Calls `tell` with the progress while the tool runs.
    async fn collect(&self, mut tell: impl FnMut(f64)) -> Result<String, BoxError> {
        let mut steps = self.0.call("collect", ()).steps();
        while let Some(step) = steps.next().await {
            match step {
                Step::Progress(progress) => tell(progress.progress / progress.total.unwrap_or(1.0)),
                Step::Done(result) => return Ok(result?.ok()?.text()),
                _ => {}
            }
        }
        Err("the call ended without a result".into())
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut out = std::io::stdout();
    let weather = Weather::connect().await?;
    let forecast = weather.forecast("Oslo", 3).await?;
    let _ = writeln!(out, "{}: {:?}", forecast.city, forecast.highs);
    let collected = weather.collect(|done| drop(writeln!(std::io::stdout(), "{:.0} %", done * 100.0))).await?;
    let _ = writeln!(out, "{collected}");
    // The error of a failed tool is an error like any other.
    if let Err(why) = weather.forecast("", 3).await {
        let _ = writeln!(out, "{why}");
    }
    Ok(())
}

#[derive(Deserialize, JsonSchema)]
struct Ask {
    city: String,
    days: u8,
}

async fn forecast(q: Ask) -> Result<Json<Forecast>, &'static str> {
    if q.city.is_empty() {
        return Err("which city?");
    }
    let highs = (0..q.days).map(|day| 11.0 + f64::from(day)).collect();
    Ok(Json(Forecast { city: q.city, highs }))
}

async fn collect(cx: &Cx) -> String {
    for station in 1..=4 {
        cx.progress(f64::from(station), Some(4.0));
    }
    "4 stations".into()
}

fn server() -> Server<()> {
    Server::new("weather", "1.0")
        .tool(Tool::new("forecast", "Highs of the next days.").read_only(), forecast)
        .tool(Tool::new("collect", "Asks every station."), collect)
}
