//! Middleware: an `async fn(Call, Next) -> Reply`, per tool or for everything a server offers.

use crate::answer;
use crate::cx::Cx;
use crate::handler::{Invocation, Run, Source};
use linchpin_proto::Reply;
use linchpin_proto::service::BoxFuture;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// An erased layer.
pub(crate) type Layer = Arc<dyn Fn(Call, Next) -> BoxFuture<'static, Reply> + Send + Sync>;

/// Erases a layer.
pub(crate) fn erase<F, Fut>(layer: F) -> Layer
where
    F: Fn(Call, Next) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Reply> + Send + 'static,
{
    Arc::new(move |call, next| Box::pin(layer(call, next)))
}

/// A call on its way to a tool, resource or prompt.
pub struct Call {
    invocation: Invocation,
    cx: Cx,
}

impl Call {
    pub(crate) fn new(invocation: Invocation, cx: Cx) -> Call {
        Call { invocation, cx }
    }

    /// What is called: the name of a tool or prompt, or the URI of a resource.
    pub fn name(&self) -> &str {
        self.cx.name()
    }

    /// The request's method, for example `tools/call`.
    pub fn method(&self) -> &'static str {
        self.cx.method().as_str()
    }

    /// The arguments as JSON text, not yet checked.
    pub fn arguments(&self) -> Cow<'_, str> {
        self.invocation.args.json()
    }

    /// Replaces the arguments. They are checked like any others.
    pub fn set_arguments(&mut self, json: impl Into<Arc<str>>) {
        self.invocation.args.0 = Source::Owned(json.into());
    }

    /// The call's context.
    pub fn cx(&self) -> &Cx {
        &self.cx
    }

    /// Refuses the call with a message for the model.
    pub fn refuse(self, message: &str) -> Reply {
        answer::failure(self.invocation.out, message)
    }

    /// Refuses the call with a JSON-RPC error.
    pub fn refuse_protocol(self, code: i32, message: &str) -> Reply {
        self.invocation.out.error(code, message, None)
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("method", &self.method()).field("name", &self.name()).finish_non_exhaustive()
    }
}

/// What is left of the chain; the handler is its last link.
pub struct Next {
    layers: Arc<[Layer]>,
    at: usize,
    run: Run,
}

impl Next {
    pub(crate) fn new(layers: Arc<[Layer]>, run: Run) -> Next {
        Next { layers, at: 0, run }
    }

    /// Runs the rest of the chain.
    pub fn run(mut self, call: Call) -> BoxFuture<'static, Reply> {
        match self.layers.get(self.at).cloned() {
            Some(layer) => {
                self.at += 1;
                layer(call, self)
            }
            None => (self.run)(call.invocation),
        }
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("left", &(self.layers.len() - self.at)).finish()
    }
}
