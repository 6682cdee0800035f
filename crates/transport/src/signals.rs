//! When the process is asked to end. Nothing here is used by a transport: signals are the program's affair.

/// Resolves when the process is asked to end: Ctrl-C (SIGINT), SIGTERM, or SIGHUP (its terminal or session is gone); elsewhere
/// than on Unix, Ctrl-C. For the `with_graceful_shutdown` of a place to serve at, or of axum.
///
/// Polling it installs handlers for these signals, for the whole process and for good: from then on they end nothing by
/// themselves. No transport does that unasked. Signals count from the first poll on. SIGHUP stays ignored where it was when the process started, as under `nohup`; that is
/// known on Linux only, so elsewhere SIGHUP keeps its default, which is an end at once.
pub async fn shutdown_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let (Ok(mut term), Ok(mut int)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
            let mut hangup = ends_by_hangup().then(|| signal(SignalKind::hangup()).ok()).flatten();
            // In a task of its own: the loop of a pipe polls this with every message, and three streams of signals cost more
            // than the channel. The task ends when nobody waits any more; its end is what is told.
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

/// Whether SIGHUP is certainly not ignored: only then may it be listened to.
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
