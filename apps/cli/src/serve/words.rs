//! Command lines for other programs: what was given, as words that mean the same elsewhere and show no password.

use super::login::without_login;
use super::native::Entry;
use super::servers::ENTRIES;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use std::path::Path;

/// Flags and words that were given for the arguments of a command, flags first, in the order of the command.
pub(crate) fn given(command: &Command, matches: &ArgMatches, entry: Option<&Entry>) -> Vec<String> {
    let (mut flags, mut plain) = (Vec::new(), Vec::new());
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        if !matches!(matches.try_contains_id(id), Ok(true))
            || matches.value_source(id) != Some(clap::parser::ValueSource::CommandLine)
        {
            continue;
        }
        let flag = arg.get_long().map(|long| format!("--{long}"));
        match (flag, arg.get_action()) {
            (Some(flag), ArgAction::SetTrue | ArgAction::SetFalse) => flags.push(flag),
            (Some(flag), ArgAction::Count) => {
                flags.extend(std::iter::repeat_n(flag, usize::from(matches.get_count(id))));
            }
            (flag, _) => {
                let is_path = is_path(arg);
                let secrets = entry.map_or(&[][..], |entry| entry.secrets);
                let is_secret = arg.get_long().is_some_and(|long| secrets.contains(&long));
                let shown = |value: &str| match value.split_once('=') {
                    Some((name, _)) if is_secret => format!("{name}=SECRET"),
                    _ if is_path => in_full(value),
                    _ if arg.get_value_hint() == ValueHint::Url => {
                        entry.map_or_else(|| without_login(value), |entry| (entry.address)(value))
                    }
                    _ => without_login(value),
                };
                for values in matches.get_raw_occurrences(id).into_iter().flatten() {
                    let values: Vec<String> =
                        values.map(|value| value.to_string_lossy()).map(|value| shown(&value)).collect();
                    match &flag {
                        Some(flag) if arg.is_require_equals_set() => flags.push(format!("{flag}={}", values.join(","))),
                        Some(flag) => flags.extend([flag.clone(), values.join(",")]),
                        None => plain.extend(values),
                    }
                }
            }
        }
    }
    flags.append(&mut plain);
    flags
}

fn is_path(arg: &Arg) -> bool {
    matches!(arg.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath)
}

/// A path that means the same in another working directory. What is not there yet may mean something else (`~`, `:memory:`).
pub(super) fn in_full(path: &str) -> String {
    let full = match std::fs::canonicalize(Path::new(path)) {
        Ok(real) => Ok(real),
        Err(_) if path.starts_with(['~', ':']) => return path.to_owned(),
        Err(_) => std::path::absolute(path),
    };
    full.map_or_else(|_| path.to_owned(), |full| full.display().to_string())
}

/// A word that could not be understood, for an error. What may be an address, or the parameters of a connection, may hold a
/// password anywhere: only what it begins with is shown.
pub(super) fn without_password(word: &str) -> String {
    let scheme = word.split_once("://").map(|(scheme, _)| scheme);
    if let Some(entry) = ENTRIES.iter().find(|entry| scheme.is_some_and(|scheme| entry.schemes.contains(&scheme))) {
        return (entry.address)(word);
    }
    if scheme.is_none() && !word.contains(['=', '@']) {
        return word.to_owned();
    }
    let end = word.find(|c: char| "=@:".contains(c) || c.is_whitespace());
    end.map_or_else(|| word.to_owned(), |end| format!("{}…", &word[..=end]))
}

/// The same error, with unexpected words shown so that they hold no password: they may be addresses, or the parameters of a
/// connection.
pub(crate) fn without_passwords(mut e: clap::Error) -> clap::Error {
    let unexpected = match e.kind() {
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        _ => return e,
    };
    if let Some(ContextValue::String(word)) = e.get(unexpected)
        && !word.starts_with('-')
        && let shown = without_password(word)
        && shown != *word
    {
        e.insert(unexpected, ContextValue::String(shown));
        // They repeat the word.
        e.remove(ContextKind::Suggested);
    }
    e
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_printed() {
        for (value, shown) in [
            ("http://me:secret@h:1/d?x=y", "http://me:PASSWORD@h:1/d?x=y"),
            ("http://me:se@cret@h/d", "http://me:PASSWORD@h/d"),
            ("http://me:se/cret@h/d", "http://…"),
            ("http://me@h/d", "http://me@h/d"),
            ("http://h:5432/a@b", "http://h:5432/a@b"),
            ("http://h/a@b:c", "http://h/a@b:c"),
            ("words", "words"),
            ("a=b", "a=b"),
        ] {
            assert_eq!(without_login(value), shown);
        }
        for (word, shown) in [
            ("words", "words"),
            ("filesystem:/a b", "filesystem:/a b"),
            ("a=b=filesystem:one", "a=…"),
            ("mysql://me:secret@h/d", "mysql:…"),
            ("me:secret@h/d", "me:…"),
            ("127.0.0.1 password = 'secret'", "127.0.0.1 …"),
            ("time:host=h password=secret", "time:…"),
        ] {
            assert_eq!(without_password(word), shown);
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn passwords_of_databases_are_not_printed() {
        for (value, shown) in [
            ("postgres://me:secret@h:1/d?sslmode=require", "postgres://me:PASSWORD@h:1/d?sslmode=require"),
            ("postgres://me:se/cret@h/d", "URL"),
            ("host=h user=u dbname=x password = 'secret x'", "host=h user=u dbname=x password=PASSWORD"),
            (r"password='a\'secret' host=h", "password=PASSWORD host=h"),
            ("password='secret", "URL"),
        ] {
            let command = Entry::named("postgres").expect("it is built in").own_command().no_binary_name(true);
            let matches = command.try_get_matches_from([value]).expect("a plain word");
            let entry = Entry::named("postgres").expect("it is built in");
            assert_eq!(entry.words(&entry.own_command(), &matches), ["postgres", shown]);
            if value.contains("://") {
                assert_eq!(without_password(value), shown);
            }
        }
    }
}
