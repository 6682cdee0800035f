//! Shutdown signals. Transports do not use this module: handling signals is up to the program.

/// Completes when the process receives Ctrl-C (SIGINT), SIGTERM or SIGHUP; on systems other than Unix, Ctrl-C.
///
/// Use it with the `with_graceful_shutdown` method of a transport, or of axum. The first poll installs handlers for
/// these signals, for the whole process and permanently: from then on the signals no longer end the process by
/// themselves. Transports never install handlers on their own. Signals before the first poll are not detected. SIGHUP
/// stays ignored if it was ignored when the process started, as under `nohup`; that is detected only on Linux, so on
/// other systems SIGHUP keeps its default and ends the process immediately.
///
/// ```no_run
/// use linchpin_transport::{http::http, shutdown_signal};
///
/// let transport = http("127.0.0.1:8931").with_graceful_shutdown(shutdown_signal());
/// ```
pub async fn shutdown_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
            let mut hangup = ends_by_hangup().then(|| signal(SignalKind::hangup()).ok()).flatten();
            // In a separate task: a pipe's loop polls this with every message, and three signal streams cost more
            // than the channel. The task ends when the receiver is dropped; its end is the notification.
            let (mut told, ended) = tokio::sync::oneshot::channel::<()>();
            tokio::spawn(std::future::poll_fn(move |cx| {
                let gone = hangup.as_mut().is_some_and(|hangup| hangup.poll_recv(cx).is_ready());
                let asked = term.poll_recv(cx).is_ready() || int.poll_recv(cx).is_ready() || gone;
                if asked || told.poll_closed(cx).is_ready() {
                    std::task::Poll::Ready(())
                } else {
                    std::task::Poll::Pending
                }
            }));
            let _ = ended.await;
            return;
        }
    }
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending().await
    }
}

/// Whether SIGHUP is certainly not ignored: only then is it handled.
#[cfg(unix)]
fn ends_by_hangup() -> bool {
    std::fs::read_to_string("/proc/self/status").is_ok_and(|status| ignores_hangup(&status) == Some(false))
}

/// What `/proc/PID/status` says about it: the lowest bit of the mask of ignored signals.
#[cfg(unix)]
fn ignores_hangup(status: &str) -> Option<bool> {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    Some(u64::from_str_radix(mask.trim(), 16).ok()? & 1 == 1)
}

#[cfg(all(test, unix))]
mod tests {
    #[test]
    fn an_ignored_hangup_is_known_from_the_mask() {
        for (status, wanted) in [
            (
                "Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001000\nSigCgt:\t0000000000000001\n",
                Some(false),
            ),
            ("SigIgn:\t0000000000001001\n", Some(true)),
            ("SigIgn:\tfffffffc00000001\n", Some(true)),
            ("SigIgn:\t\n", None),
            ("", None),
        ] {
            assert_eq!(super::ignores_hangup(status), wanted, "{status}");
        }
    }
}
