//! A frame in, a frame out, in this process: what every transport pays before it adds its own.

use crate::wire::{Era, INITIALIZE, INITIALIZED, call};
use bytes::{Bytes, BytesMut};
use linchpin_bench::counting::{self, Counts};
use linchpin_core::service::IntoService;
use linchpin_core::{RequestContext, Service};
use linchpin_proto::driver::Started;
use linchpin_proto::{Engine, Event, frame};
use std::io;
use std::sync::Arc;
use std::task::{Context, Waker};

/// A server and the engine that a transport would put in front of it.
pub(crate) struct Direct {
    service: Arc<dyn Service>,
    engine: Engine,
    context: Arc<RequestContext>,
    era: Era,
}

impl Direct {
    pub(crate) fn open(era: Era) -> io::Result<Direct> {
        let service = linchpin_bench::server(5).into_shared()?;
        let engine = Engine::new(service.limits().clone());
        let mut direct = Direct { service, engine, context: Arc::default(), era };
        if era == Era::Legacy {
            direct.handle(Bytes::from_static(INITIALIZE.as_bytes()))?;
            direct.handle(Bytes::from_static(INITIALIZED.as_bytes()))?;
        }
        Ok(direct)
    }

    /// What a pipe does with one message. `None` for what has no answer.
    fn handle(&mut self, bytes: Bytes) -> io::Result<Option<Vec<u8>>> {
        let message = match frame::message(bytes, self.service.limits()) {
            Ok(message) => message,
            Err(unreadable) => return Ok(Some(unreadable.reply.into_frame())),
        };
        match self.engine.receive(&message) {
            Event::Reply(reply) => Ok(Some(reply.into_frame())),
            Event::Call(request) => {
                let id = request.id.clone();
                let mut cx = Context::from_waker(Waker::noop());
                let started = self.service.start(request, self.context.clone(), &mut cx);
                let Started::Ended(Some(reply)) = self.engine.started(id, started) else {
                    return Err(io::Error::other("a simple call did not finish at its first poll"));
                };
                Ok(Some(reply.into_frame()))
            }
            _ => Ok(None),
        }
    }

    fn echo(&mut self, n: u32, (name, arguments): (&str, &str)) -> io::Result<Counts> {
        let message = call(self.era, name, arguments);
        let mut sum = Counts::default();
        for _ in 0..n {
            let bytes = frame_of(&message);
            let before = Counts::now();
            let answer = self.handle(bytes)?;
            let cost = Counts::now().since(before);
            sum.allocs += cost.allocs;
            sum.reallocs += cost.reallocs;
            sum.bytes += cost.bytes;
            if !answer.is_some_and(|a| a.windows(11).any(|w| w == b"Quick brown")) {
                return Err(io::Error::other("wrong answer"));
            }
        }
        Ok(sum)
    }

    /// The sum over `calls` calls, after `warm_up` that are not counted.
    pub(crate) fn cost(&mut self, warm_up: u32, calls: u32, tool: (&str, &str)) -> io::Result<Counts> {
        self.echo(warm_up, tool)?;
        self.echo(calls, tool)
    }

    /// The allocations of one call: bytes and stack.
    pub(crate) fn sites(&mut self, warm_up: u32, tool: (&str, &str)) -> io::Result<Vec<(usize, String)>> {
        self.echo(warm_up, tool)?;
        let bytes = frame_of(&call(self.era, tool.0, tool.1));
        counting::record(true);
        let answer = self.handle(bytes);
        let sites = counting::take_sites();
        answer.map(|_| sites)
    }
}

/// A frame as a transport cuts it from its read buffer: shared from the start, so that cloning it costs nothing.
fn frame_of(message: &str) -> Bytes {
    let mut buffer = BytesMut::from(message);
    buffer.split_to(message.len()).freeze()
}
