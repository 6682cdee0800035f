//! `linchpin user`: the users in a file.

use crate::fail::Failure;
use crate::show::out::{Out, note};
use clap::{Args, Subcommand, ValueHint};
use linchpin::guard::Secret;
use linchpin::issuer::{User, UserTable};
use serde_json::json;
use std::path::{Path, PathBuf};

#[derive(Debug, Args)]
pub(crate) struct UserArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Add a user. Without --password-stdin a password is generated, and printed once.
    #[command(before_help = "\
Examples:
  linchpin user add ada
  linchpin user add ada --group admins --password-stdin < secret.txt
")]
    Add(Add),
    /// Change a user's password.
    #[command(before_help = "\
Examples:
  linchpin user passwd ada
  linchpin user passwd ada --password-stdin < secret.txt
")]
    Passwd {
        #[command(flatten)]
        which: Which,
        #[command(flatten)]
        password: Password,
    },
    /// Disable a user. Clients that they authorized lose access when their access tokens expire, after 15 minutes or
    /// --access-life.
    #[command(before_help = "\
Examples:
  linchpin user disable ada
")]
    Disable(Which),
    /// Enable a user again.
    #[command(before_help = "\
Examples:
  linchpin user enable ada
")]
    Enable(Which),
    /// Remove a user from the file.
    #[command(before_help = "\
Examples:
  linchpin user remove ada
")]
    Remove(Which),
    /// List the users.
    #[command(before_help = "\
Examples:
  linchpin user list --file users.toml
")]
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        file: InFile,
    },
}

#[derive(Debug, Args)]
struct InFile {
    /// The file of users. It is rewritten, without comments.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, default_value = "users.toml")]
    file: PathBuf,
}

#[derive(Debug, Args)]
struct Which {
    /// The login name.
    name: String,
    #[command(flatten)]
    file: InFile,
}

#[derive(Debug, Args)]
struct Password {
    /// Read the password from standard input: the first line.
    #[arg(long)]
    password_stdin: bool,
}

#[derive(Debug, Args)]
struct Add {
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    password: Password,

    /// The full name.
    #[arg(long = "full-name", value_name = "TEXT")]
    full_name: Option<String>,

    /// The mail address.
    #[arg(long, value_name = "ADDRESS")]
    email: Option<String>,

    /// A group, for --grant. May be repeated.
    #[arg(long, value_name = "GROUP")]
    group: Vec<String>,

    /// Scopes that the user may grant [default: all].
    #[arg(long, value_name = "SCOPE,...", value_delimiter = ',')]
    scopes: Option<Vec<String>>,
}

pub(crate) fn run(args: UserArgs) -> Result<(), Failure> {
    match args.what {
        What::Add(add) => added(add),
        What::Passwd { which, password } => {
            let mut table = read(&which.file.file)?;
            known(&mut table, &which)?;
            let shown = set(&mut table, &which.name, &password)?.1;
            write(&table, &which.file.file)?;
            note(format!("changed the password of {}", which.name));
            print(shown)
        }
        What::Disable(which) => change(&which, "can no longer log in", |user| user.disabled = true),
        What::Enable(which) => change(&which, "can log in again", |user| user.disabled = false),
        What::Remove(which) => {
            let mut table = read(&which.file.file)?;
            known(&mut table, &which)?;
            table.remove(&which.name);
            write(&table, &which.file.file)?;
            note(format!("removed {}", which.name));
            Ok(())
        }
        What::List { json, file } => list(&read(&file.file)?, json),
    }
}

fn added(add: Add) -> Result<(), Failure> {
    let file = &add.which.file.file;
    let mut table = if file.exists() { read(file)? } else { UserTable::default() };
    if table.get_mut(&add.which.name).is_some() {
        return Err(Failure::usage(format!("{} has a user {} already", file.display(), add.which.name))
            .hint("`linchpin user passwd` changes the password"));
    }
    let (user, shown) = set(&mut table, &add.which.name, &add.password)?;
    user.name = add.full_name;
    user.email = add.email;
    user.groups = add.group;
    user.scopes = add.scopes;
    write(&table, file)?;
    note(format!("added {} to {}", add.which.name, file.display()));
    print(shown)
}

/// Sets a password: the one of standard input, or a new one, which is returned.
fn set<'t>(table: &'t mut UserTable, name: &str, from: &Password) -> Result<(&'t mut User, Option<Secret>), Failure> {
    let (password, made) = match from.password_stdin {
        true => {
            let mut line = String::new();
            std::io::stdin()
                .read_line(&mut line)
                .map_err(|e| Failure::new(format!("cannot read standard input: {e}")))?;
            let password = line.trim_end_matches(['\r', '\n']).to_owned();
            if password.chars().count() < PASSWORD_CHARS_MIN {
                let why = format!("a password has at least {PASSWORD_CHARS_MIN} characters");
                return Err(Failure::usage(why).hint("without --password-stdin, a good one is made"));
            }
            (Secret::new(password), None)
        }
        false => {
            let made = Secret::new(linchpin::issuer::random_text());
            (made.clone(), Some(made))
        }
    };
    Ok((table.set_password(name, &password).map_err(Failure::usage)?, made))
}

const PASSWORD_CHARS_MIN: usize = 8;

/// Prints a password that was made.
fn print(made: Option<Secret>) -> Result<(), Failure> {
    let Some(made) = made else { return Ok(()) };
    note("the password, shown only once:");
    let mut out = Out::new();
    out.line(made.expose())?;
    Ok(out.flush()?)
}

fn change(which: &Which, became: &str, change: impl FnOnce(&mut User)) -> Result<(), Failure> {
    let mut table = read(&which.file.file)?;
    change(known(&mut table, which)?);
    write(&table, &which.file.file)?;
    note(format!("{} {became}", which.name));
    Ok(())
}

fn known<'t>(table: &'t mut UserTable, which: &Which) -> Result<&'t mut User, Failure> {
    let names: Vec<String> = table.iter().map(|(name, _)| name.to_owned()).collect();
    table.get_mut(&which.name).ok_or_else(|| {
        let failure = Failure::usage(format!("{} has no user {}", which.file.file.display(), which.name));
        if names.is_empty() { failure } else { failure.hint(format!("users: {}", names.join(", "))) }
    })
}

fn read(file: &Path) -> Result<UserTable, Failure> {
    UserTable::read(file).map_err(|error| {
        let failure = Failure::usage(error);
        if file.exists() {
            failure
        } else {
            failure.hint("`linchpin user add NAME` creates the file; --file selects another")
        }
    })
}

fn write(table: &UserTable, file: &Path) -> Result<(), Failure> {
    table.write(file).map_err(Failure::new)
}

fn list(table: &UserTable, json: bool) -> Result<(), Failure> {
    let mut out = Out::new();
    if json {
        let users = table.iter().map(|(name, user)| {
            json!({ "name": name, "fullName": user.name, "email": user.email, "groups": user.groups,
                    "scopes": user.scopes, "disabled": user.disabled })
        });
        out.json(&json!({ "users": users.collect::<Vec<_>>() }))?;
        return Ok(out.flush()?);
    }
    let mut rows = Vec::new();
    for (name, user) in table.iter() {
        let mut about: Vec<String> = [&user.name, &user.email].into_iter().flatten().cloned().collect();
        about.extend((!user.groups.is_empty()).then(|| format!("groups {}", user.groups.join(", "))));
        about.extend(user.scopes.as_ref().map(|scopes| format!("scopes {}", scopes.join(", "))));
        about.extend(user.disabled.then(|| "disabled".to_owned()));
        rows.push((out.style.bold(name), about.join("; ")));
    }
    out.table(&rows)?;
    out.summary(&[(rows.len(), "user")])?;
    Ok(out.flush()?)
}
