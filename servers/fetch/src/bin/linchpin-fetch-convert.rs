//! Converts the page on standard input: for programs that embed this server and name this one by `Converter::program`.

use std::process::ExitCode;

fn main() -> std::io::Result<ExitCode> {
    linchpin_fetch::convert_stdin()
}
