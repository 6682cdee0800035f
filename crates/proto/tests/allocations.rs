//! What a request costs in allocations before a handler sees it. A number that grows here is paid by every request.

#![allow(unsafe_code, reason = "a counting allocator has to be an allocator")]

use http::{HeaderMap, HeaderName, HeaderValue};
use linchpin_core::Limits;
use linchpin_proto::engine::open;
use linchpin_proto::frame;
use linchpin_proto::http::rules::{Ask, PostKind, SessionHeaders, classify};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|count| count.set(count.get() + 1));
        // SAFETY: see above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: see above.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn counted<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = COUNT.get();
    let result = work();
    (COUNT.get() - before, result)
}

#[test]
fn a_request_that_stands_alone_is_read_opened_and_admitted_without_allocating() {
    let key = "io.modelcontextprotocol/";
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"hi"}},"_meta":{{"{key}protocolVersion":"2026-07-28","{key}clientCapabilities":{{"elicitation":{{}}}},"{key}logLevel":"info","progressToken":1}}}}}}"#
    );
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "echo")];
    let headers: HeaderMap = headers
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
        .into_iter()
        .collect();
    let ask = Ask { header_params: &|_, _| None, defines: &|_| false, named_by: &|_| None };
    let limits = Limits::default();
    let bytes = bytes::Bytes::from(body);
    // The first clone of a buffer makes it shared, which costs one allocation in its life.
    drop(bytes.clone());

    let (reading, message) = counted(|| frame::message(bytes, &limits).unwrap());
    let (opening, request) = counted(|| open(&message, None).unwrap());
    let (admitting, admitted) = counted(|| classify(&message, &headers, &SessionHeaders::of(&headers), ask).unwrap());
    let (asking, caps) = counted(|| request.caller.caps());
    drop(request);
    assert!(caps.elicitation_form);
    assert!(matches!(admitted, PostKind::Request(_)));
    // The request is shared by what needs it.
    assert_eq!((reading, opening, admitting, asking), (0, 1, 1, 0));
}
