//! The table.

use crate::files::{self, FORMATS, is_id};
use crate::{DOWNLOAD, WRITE, content, share, show, write};
use linchpin_kit::ToolError;
use linchpin_rest::{Answer, Arg, Args, Ask, Call, Rest, boolean, get, int, one_of, patch, post, segment, text};

/// The calls, the published one first.
pub const CALLS: &[Call] = &[
    SEARCH,
    LIST,
    METADATA,
    READ.run(|rest, args| Box::pin(content::read(rest, args))),
    COMMENTS,
    GET.run(|rest, args| Box::pin(content::download(rest, args))),
    CREATE.run(|rest, args| Box::pin(write::create(rest, args))),
    UPDATE.run(|rest, args| Box::pin(write::update(rest, args))),
    SHARE,
];

/// Beside other servers it is `gdrive_search`.
const SEARCH: Call = get(
    "search",
    "Search files",
    "original files",
    "Searches Google Drive for files with these words. Returns name, type and id.",
    "/files",
)
.args(&[
    text("query").local().about("Words, or with raw such as: name contains 'plan'."),
    boolean("raw").local().opt().about("The query is in Drive's query language."),
    SIZE.default("10").unlisted(),
    text("order_by").wire("orderBy").unlisted(),
    text("drive_id").wire("driveId").like(is_id, "the id of a shared drive").unlisted(),
])
.fixed(LISTS)
.adjust(search)
.list("files")
.keep("id uri name mimeType modifiedTime size webViewLink")
.after(|rest, _, answer| Box::pin(show::with_uris(rest, answer)))
.text(show::found);

const LIST: Call =
    get("gdrive_list_folder", "List a folder", "files", "Lists the files of a folder, folders first.", "/files")
        .args(&[
            text("folder_id").local().default("root").like(is_id, "the id of a folder").about("Its id."),
            SIZE.default("50"),
        ])
        .fixed(LISTS)
        .adjust(in_folder)
        .list("files")
        .keep("id uri name mimeType modifiedTime size webViewLink")
        .after(|rest, _, answer| Box::pin(show::with_uris(rest, answer)))
        .text(show::found)
        .extra();

const METADATA: Call =
    get("gdrive_get_metadata", "File details", "files", "Returns the details of a file.", "/files/{fileId}")
        .args(&[ID])
        .fixed(&[("fields", files::DETAILS), ("supportsAllDrives", "true")])
        .before(|rest, args| Box::pin(by_id(rest, args)))
        .extra();

const READ: Call = get(
    "gdrive_read",
    "Read a file",
    "files",
    "Reads a file as text: documents as Markdown, sheets as CSV (the first), slides as text.",
    "/files/{fileId}",
)
.args(&[
    ID,
    FORMAT,
    int("offset").local().range(0, 1 << 50).default("0").about("next_offset of the previous part."),
    int("max").local().range(100, 20_000).default("20000").about("Bytes."),
])
.text(show::part)
.extra();

const COMMENTS: Call = get(
    "gdrive_comments",
    "Comments on a file",
    "files",
    "Lists the comments on a file and their replies.",
    "/files/{fileId}/comments",
)
.args(&[ID, SIZE.default("20")])
.fixed(&[(
    "fields",
    "nextPageToken,comments(id,content,author(displayName),createdTime,resolved,quotedFileContent(value),\
     replies(content,author(displayName),createdTime,action))",
)])
.before(|rest, args| Box::pin(by_id(rest, args)))
.list("comments")
.items("comments")
.extra();

const GET: Call = post(
    "gdrive_download",
    "Download a file",
    "files",
    "Saves a file in the operator's download directory, under a new name if there is one.",
    "/files/{fileId}",
)
.args(&[ID, FORMAT, text("name").local().opt().chars(200).about("Instead of its own.")])
.needs(DOWNLOAD)
.extra();

const CREATE: Call = post(
    "gdrive_create",
    "Create a file",
    "write",
    "Creates a file, or a folder (mime_type application/vnd.google-apps.folder).",
    "/files",
)
.args(&[
    text("name").about("Its name."),
    text("content").opt().about("As text."),
    MIME.about("Of the content; text/plain if there is one."),
    text("parent_id").opt().like(is_id, "the id of a folder").about("The folder."),
    boolean("convert").opt().about("Make it a Google document, of CSV a spreadsheet."),
])
.keep("id name mimeType webViewLink")
.needs(WRITE)
.extra();

const UPDATE: Call =
    patch("gdrive_update", "Change a file", "write", "Renames a file, or replaces its content.", "/files/{fileId}")
        .args(&[
            ID,
            text("name").opt().about("The new one."),
            text("content").opt().about("All of it."),
            MIME.unlisted(),
        ])
        .keep("id name mimeType webViewLink")
        .needs(WRITE)
        .extra();

const SHARE: Call = post(
    "gdrive_share",
    "Share a file",
    "write",
    "Gives somebody access to a file. Ask the user first, always for anyone: then the link is enough.",
    "/files/{fileId}/permissions",
)
.args(&[
    ID,
    one_of("type", &["user", "group", "domain", "anyone"]).about("Who gets access."),
    one_of("role", &["reader", "commenter", "writer"]).about("What they may do."),
    text("email").wire("emailAddress").opt().like(share::is_email, "an address of e-mail").about("Of a user or group."),
    text("domain").opt().like(share::is_domain, "a domain").about("All of it."),
    boolean("notify").wire("sendNotificationEmail").in_query().unlisted(),
])
.before(|rest, args| Box::pin(share::check(rest, args)))
.adjust(|ask, _| ask.query("supportsAllDrives", "true").query("fields", "id,type,role,emailAddress,domain"))
.needs(WRITE)
.extra();

const ID: Arg = segment("file_id").wire("fileId").like(is_id, "the id of a file").about("Its id.");
const SIZE: Arg = int("page_size").wire("pageSize").range(1, 100).about("Most at once.");
const FORMAT: Arg =
    one_of("format", FORMATS).local().opt().about("Of Google documents, sheets, slides and drawings; others have one.");
const MIME: Arg = text("mime_type").local().opt().like(write::is_mime_type, "a type such as text/plain");

const LISTS: &[(&str, &str)] = &[
    ("fields", "nextPageToken,files(id,name,mimeType,modifiedTime,size,webViewLink)"),
    ("supportsAllDrives", "true"),
    ("includeItemsFromAllDrives", "true"),
];

fn search(ask: Ask, args: &Args) -> Ask {
    let query = args.text("query");
    let q = match args.is_on("raw") {
        false => format!("fullText contains {} and trashed = false", files::quoted(query)),
        true if query.contains("trashed") => query.to_owned(),
        true => format!("({query}) and trashed = false"),
    };
    let ask = if args.get("drive_id").is_some() { ask.query("corpora", "drive") } else { ask };
    ask.query("q", q)
}

fn in_folder(ask: Ask, args: &Args) -> Ask {
    let folder = files::bare(args.text("folder_id"));
    ask.query("q", format!("{} in parents and trashed = false", files::quoted(folder))).query("orderBy", "folder,name")
}

/// Takes the id out of what names a file.
async fn by_id(_: &Rest, args: &mut Args) -> Result<Option<Answer>, ToolError> {
    let id = files::bare(args.text("file_id")).to_owned();
    args.set("file_id", id);
    Ok(None)
}
