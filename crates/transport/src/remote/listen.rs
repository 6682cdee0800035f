//! The standalone stream, for unsolicited messages of a server with sessions.

use super::answer::{Form, Stream};
use super::link::{Shared, passing};
use linchpin_core::connector::{Traffic, TransportError};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Listens as long as the server has such a stream. It is optional, so no failure is reported, except that the session is
/// gone; a stream that ends or breaks is resumed, with growing delays while no message arrives.
pub(super) async fn listen(shared: Arc<Shared>) {
    let limits = shared.place.options.limits.clone();
    let mut stream = Stream::new(limits.messages.frame_bytes_max);
    let (mut worked, mut vain) = (false, 0);
    loop {
        let begun = Instant::now();
        let answer = shared.stream(shared.features(), &stream.last_id).await;
        shared.listens();
        match answer {
            Ok(mut answer) if answer.parts.status.is_success() => {
                if Form::of(&answer) != Form::Stream {
                    return;
                }
                worked = true;
                shared.place.options.show(|| Traffic::Note("listening to the server"));
                // No response is expected here, and none is accepted.
                let read = hear(&shared, &mut answer.body, &mut stream).await;
                if stream.moved || begun.elapsed() > STEADY {
                    vain = 0;
                }
                if read.is_err() {
                    return;
                }
            }
            Ok(answer) if worked && passing(answer.parts.status) => {}
            // Where the stream was open before, the session is what is not found.
            Err(TransportError::Forgotten) if worked => {
                shared.place.options.inbox.forgotten();
                return;
            }
            // Refused, or there is no such stream: whether the session is gone, the next request will find out.
            Ok(_)
            | Err(TransportError::Forgotten | TransportError::Unauthorized(_) | TransportError::Unreadable(_)) => {
                return;
            }
            Err(_) => {}
        }
        tokio::time::sleep(stream.wait(vain, limits.connections.resume_ms_max)).await;
        vain += 1;
        stream.again();
    }
}

/// Dispatches messages until the body ends or breaks.
///
/// # Errors
/// When an event is too long: it would be so again.
async fn hear(shared: &Shared, body: &mut linchpin_web::WebBody, stream: &mut Stream) -> Result<(), TransportError> {
    while let Ok(Some(piece)) = body.chunk().await {
        let fed = stream.feed(&piece);
        while let Some(event) = stream.next() {
            shared.place.hear_event(event, None, &mut |_| {});
        }
        fed?;
    }
    Ok(())
}

/// A stream that lasted this long counts as successful, even without messages.
const STEADY: Duration = Duration::from_secs(5);
