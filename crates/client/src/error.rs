//! What can go wrong for a host.

use linchpin_proto::LinkError;
use linchpin_types::error::ErrorObject;
use serde_json::value::RawValue;
use std::fmt;
use std::time::Duration;

/// Why something did not work. Each variant's text says what happened and, where that is known, what to do.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// No connection came about: the server cannot be reached, or there was no agreement on a protocol version.
    Connect(String),
    /// The connection was lost, or this request was: what the wire says.
    Link(LinkError),
    /// The server answered with an error.
    Refused(Refused),
    /// The tool says that it failed (`isError`), in its own words. Only from methods that want its result decoded.
    Tool(String),
    /// No answer within this time.
    Timeout(Duration),
    /// The server asked for more input after as many rounds as the client's limits allow.
    Rounds(u32),
    /// The server asked for something that this client cannot answer, or the host's answer does not fit the question.
    Ask(String),
    /// The server has no tool of this name, or one that this client refused: why.
    Tools(String),
    /// What the host passed cannot be sent.
    Arguments(String),
    /// The answer cannot be read as what it should be, or does not fit the schema that was declared for it.
    Unexpected(String),
    /// The connection was closed by this side.
    Closed,
}

/// An error object of the server.
#[derive(Clone)]
pub struct Refused {
    /// The code, see [`linchpin_types::error::code`].
    pub code: i32,
    /// What the server says.
    pub message: String,
    /// What it adds.
    pub data: Option<Box<RawValue>>,
}

impl Refused {
    /// Reads an error object as leniently as possible.
    pub(crate) fn read(json: &str) -> Refused {
        match serde_json::from_str::<ErrorObject>(json) {
            Ok(ErrorObject { code, message, data }) => Refused { code, message, data },
            Err(_) => Refused {
                code: linchpin_types::error::code::INTERNAL_ERROR,
                message: format!("an error that cannot be read: {}", json.chars().take(200).collect::<String>()),
                data: None,
            },
        }
    }
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Connect(why) => write!(f, "cannot connect: {why}"),
            Error::Link(why) => why.fmt(f),
            Error::Refused(error) => write!(f, "the server answered with an error: {error}"),
            Error::Tool(text) => write!(f, "the tool failed: {text}"),
            Error::Timeout(after) => {
                write!(f, "no answer within {} ms; give the call more time or ask for progress", after.as_millis())
            }
            Error::Rounds(n) => write!(f, "the server asked for input again after {n} rounds, which is the limit"),
            Error::Ask(why) | Error::Tools(why) | Error::Arguments(why) | Error::Unexpected(why) => f.write_str(why),
            Error::Closed => f.write_str("the connection is closed"),
        }
    }
}

impl std::error::Error for Error {}

impl From<LinkError> for Error {
    fn from(why: LinkError) -> Error {
        Error::Link(why)
    }
}
