//! Converts the page on standard input: for programs that embed this server and name this one by `Converter::program`.

fn main() -> std::io::Result<()> {
    linchpin_fetch::convert_stdin()
}
