//! Which functions a read-only statement may call.
//!
//! [`judge`] is an allow-list: PostgreSQL's own functions that are immutable or stable, or on the list of harmless
//! volatile ones; functions of extensions known to be harmless; and functions in a trusted language that are declared
//! immutable or stable and are not SECURITY DEFINER. Everything else is refused with a message that names it and
//! `--allow-functions`.

use crate::value::texts;
use crate::wire::Row;
use linchpin_kit::ToolError;

/// PostgreSQL's own stable or immutable functions that are refused all the same: they execute SQL from a string or read
/// a relation named in one, consume transaction IDs, call the input function of a type named in a string, or read the
/// body of a function, which may contain values of such types.
const DENIED_FUNCTIONS: &str = "current_setting cursor_to_xml cursor_to_xmlschema database_to_xml database_to_xml_and_xmlschema database_to_xmlschema \
    fmgr_c_validator fmgr_internal_validator fmgr_sql_validator pg_current_xact_id pg_input_error_info pg_input_is_valid pg_show_all_settings query_to_xml query_to_xml_and_xmlschema \
    query_to_xmlschema schema_to_xml schema_to_xml_and_xmlschema schema_to_xmlschema table_to_xml \
    table_to_xml_and_xmlschema table_to_xmlschema ts_stat txid_current";

/// The two of these that are refused only to roles that may read protected settings.
const PROTECTED_SETTINGS: [&str; 2] = ["current_setting", "pg_show_all_settings"];

/// With `--schemas`: PostgreSQL's own functions, of any version, that expose the activity of other sessions or values
/// of other schemas; they are also refused where a view calls them. The catalogue's information about other schemas is
/// not hidden, so functions that only repeat it are not listed.
const OTHERS_FUNCTIONS: &str = "pg_blocking_pids pg_cursor pg_get_sequence_data pg_listening_channels pg_lock_status pg_mcv_list_items \
    pg_prepared_statement pg_prepared_xact pg_safe_snapshot_blocking_pids pg_sequence_last_value pg_stat_get_activity \
    pg_stat_get_backend_activity pg_stat_get_backend_activity_start pg_stat_get_backend_client_addr \
    pg_stat_get_backend_client_port pg_stat_get_backend_dbid pg_stat_get_backend_idset pg_stat_get_backend_pid \
    pg_stat_get_backend_start pg_stat_get_backend_subxact pg_stat_get_backend_userid pg_stat_get_backend_wait_event \
    pg_stat_get_backend_wait_event_type pg_stat_get_backend_xact_start pg_stat_get_progress_info pg_stat_get_subscription \
    pg_stat_get_wal_receiver pg_stat_get_wal_senders";

/// Exceptions among the functions of harmless extensions: they execute a statement built from strings. With `--schemas`
/// also those that expose statements, or values of relations named in a string.
const DENIED_OF_EXTENSIONS: &str = "find_extent st_find_extent st_findextent";
const OTHERS_OF_EXTENSIONS: &str = "_postgis_index_extent pg_stat_statements st_estimated_extent st_estimatedextent";

/// PostgreSQL's own volatile functions that only read.
const HARMLESS_VOLATILE: &str = "array_sample array_shuffle bernoulli clock_timestamp current_query gen_random_uuid pg_blocking_pids \
    pg_collation_actual_version pg_current_wal_flush_lsn pg_current_wal_insert_lsn pg_current_wal_lsn \
    pg_database_collation_actual_version pg_database_size pg_get_sequence_data pg_indexes_size pg_is_in_recovery \
    pg_is_wal_replay_paused pg_jit_available pg_last_committed_xact pg_last_wal_receive_lsn pg_last_wal_replay_lsn \
    pg_last_xact_replay_timestamp pg_lock_status pg_notification_queue_usage pg_partition_ancestors pg_partition_tree \
    pg_prepared_xact pg_relation_size pg_safe_snapshot_blocking_pids pg_sequence_last_value pg_stat_get_recovery_prefetch \
    pg_stat_get_xact_blocks_fetched pg_stat_get_xact_blocks_hit pg_stat_get_xact_numscans pg_stat_get_xact_tuples_deleted \
    pg_stat_get_xact_tuples_fetched pg_stat_get_xact_tuples_inserted pg_stat_get_xact_tuples_returned \
    pg_stat_get_xact_tuples_updated pg_table_size pg_tablespace_size pg_total_relation_size random random_normal system \
    timeofday timezone uuidv4 uuidv7";

/// Extensions whose C functions only compute, with the volatile functions for which that is true too.
const HARMLESS_EXTENSIONS: [(&str, &[&str]); 27] = [
    ("bloom", &[]),
    ("btree_gin", &[]),
    ("btree_gist", &[]),
    ("citext", &[]),
    ("cube", &[]),
    ("dict_int", &[]),
    ("dict_xsyn", &[]),
    ("earthdistance", &[]),
    ("fuzzystrmatch", &[]),
    ("h3", &[]),
    ("hstore", &[]),
    ("intagg", &[]),
    ("intarray", &[]),
    ("ip4r", &[]),
    ("isn", &[]),
    ("ltree", &[]),
    ("pg_stat_statements", &["pg_stat_statements", "pg_stat_statements_info"]),
    ("pg_trgm", &[]),
    ("pgcrypto", &["gen_random_bytes", "gen_random_uuid", "gen_salt"]),
    ("postgis", &[]),
    ("prefix", &[]),
    ("seg", &[]),
    ("tsm_system_rows", &["system_rows"]),
    ("tsm_system_time", &["system_time"]),
    ("unaccent", &[]),
    ("uuid-ossp", &["uuid_generate_v1", "uuid_generate_v1mc", "uuid_generate_v4"]),
    ("vector", &[]),
];

/// Whether a name is in any of these lists.
pub(crate) fn is_in(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == name)
}

/// PostgreSQL's own immutable or stable functions that are refused.
pub(crate) fn denied_functions(schemas_limited: bool) -> String {
    let others = if schemas_limited { OTHERS_FUNCTIONS } else { "" };
    texts(DENIED_FUNCTIONS.split_ascii_whitespace().chain(others.split_ascii_whitespace()))
}

/// A function that a statement may call: a row of [`crate::sql::FUNCTIONS`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    /// How the statement reaches it; empty if the statement names it.
    pub(crate) why: String,
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) volatile: bool,
    /// Whether its language confines it to the database.
    pub(crate) trusted: bool,
    /// Whether it runs with its owner's privileges (SECURITY DEFINER).
    pub(crate) definer: bool,
    /// Whether it is built into the server.
    pub(crate) builtin: bool,
    /// The extension that it belongs to, if any.
    pub(crate) extension: String,
    /// Whether the statement passes it internal values, or text from which it creates a value of any type.
    pub(crate) raw: bool,
}

impl Function {
    pub(crate) fn new(row: &Row) -> Self {
        Self {
            why: row.text(0),
            schema: row.text(1),
            name: row.text(2),
            volatile: row.text(3) == "v",
            trusted: row.is_true(4),
            definer: row.is_true(5),
            builtin: row.is_true(6),
            extension: row.text(7),
            raw: row.is_true(8),
        }
    }
}

/// What a decision depends on besides the function.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'a> {
    /// Functions allowed by the operator: `schema.name`.
    pub(crate) allowed: &'a [String],
    /// Whether the role may read protected settings.
    pub(crate) protected_settings: bool,
    pub(crate) schemas_limited: bool,
}

/// Decides whether the statement may call the function.
///
/// # Errors
/// When it may not; the message names the function and a remedy.
pub(crate) fn judge(function: &Function, rules: Rules<'_>) -> Result<(), ToolError> {
    const VOLATILE: &str = "it is volatile and may have side effects";
    const RAW: &str = "it is internal to the server, and could run functions of the types passed to it";
    const OTHERS: &str = "it exposes other sessions or schemas, and this server is limited to some schemas";
    let Function { schema, name, volatile, .. } = function;
    let full = format!("{schema}.{name}");
    if rules.allowed.contains(&full) {
        return Ok(());
    }
    let harmless = |known: bool| if *volatile { known } else { !function.raw };
    let doubt = if *volatile { VOLATILE } else { RAW };
    let of = HARMLESS_EXTENSIONS.iter().find(|(known, _)| *known == function.extension);
    let reason = if function.builtin {
        let settings = PROTECTED_SETTINGS.contains(&name.as_str());
        if settings && !rules.protected_settings {
            return Ok(());
        }
        if settings {
            "this role could read protected settings with it"
        } else if is_in(DENIED_FUNCTIONS, name) {
            "it can run other statements or has lasting effects"
        } else if rules.schemas_limited && is_in(OTHERS_FUNCTIONS, name) {
            OTHERS
        } else if harmless(is_in(HARMLESS_VOLATILE, name)) {
            return Ok(());
        } else {
            doubt
        }
    } else if let Some((_, known)) = of {
        if is_in(DENIED_OF_EXTENSIONS, name) {
            "it runs a statement built from strings"
        } else if rules.schemas_limited && is_in(OTHERS_OF_EXTENSIONS, name) {
            OTHERS
        } else if harmless(known.contains(&name.as_str())) {
            return Ok(());
        } else {
            doubt
        }
    } else if *volatile {
        VOLATILE
    } else if function.definer {
        "it runs with its owner's privileges (SECURITY DEFINER)"
    } else if !function.trusted {
        "it is written in an untrusted language"
    } else {
        return Ok(());
    };
    let via = if function.why.is_empty() { String::new() } else { format!(" (through {})", function.why) };
    let hint = match (function.builtin, *volatile) {
        (true, _) if name == "current_setting" => "Use SHOW for unprotected settings.".to_owned(),
        (false, true) => format!(
            "Omit it. If it only reads, its owner can declare it STABLE or IMMUTABLE, or the operator of this server can \
             start it with --allow-functions {full}."
        ),
        _ => format!("Omit it. The operator of this server can allow it with --allow-functions {full}."),
    };
    Err(ToolError::denied(format!("Function {full}{via} is not allowed in read-only mode: {reason}.")).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function() -> Function {
        Function {
            why: String::new(),
            schema: "public".into(),
            name: "f".into(),
            volatile: false,
            trusted: true,
            definer: false,
            builtin: false,
            extension: String::new(),
            raw: false,
        }
    }

    const RULES: Rules<'_> = Rules { allowed: &[], protected_settings: false, schemas_limited: false };

    #[test]
    fn functions_are_judged_by_what_they_are() {
        let own = |name: &str, volatile| Function {
            name: name.into(),
            builtin: true,
            volatile,
            schema: "pg_catalog".into(),
            trusted: false,
            ..function()
        };
        let of = |extension: &str, name: &str, volatile| Function {
            extension: extension.into(),
            name: name.into(),
            volatile,
            trusted: false,
            ..function()
        };
        let good = [
            function(),
            own("lower", false),
            own("random", true),
            Function { raw: true, ..own("bernoulli", true) },
            own("current_setting", false),
            of("vector", "l2_distance", false),
            of("uuid-ossp", "uuid_generate_v4", true),
        ];
        for function in &good {
            judge(function, RULES).unwrap();
        }
        let bad = [
            own("pg_sleep", true),
            own("pg_read_file", true),
            own("table_to_xml", false),
            own("set_config", true),
            Function { volatile: true, ..function() },
            Function { definer: true, ..function() },
            Function { trusted: false, ..function() },
            of("tablefunc", "crosstab", false),
            of("xml2", "xpath_table", false),
            of("dblink", "dblink", true),
            of("pg_trgm", "set_limit", true),
            of("postgis", "st_findextent", false),
            own("fmgr_sql_validator", false),
            Function { raw: true, ..own("array_in", false) },
            Function { raw: true, ..of("hstore", "hstore_in", false) },
        ];
        for function in &bad {
            let fault = judge(function, RULES).unwrap_err();
            assert!(fault.message().contains(&format!("{}.{}", function.schema, function.name)), "{fault}");
            assert!(fault.to_string().contains("--allow-functions"), "{fault}");
            let allowed = [format!("{}.{}", function.schema, function.name)];
            judge(function, Rules { allowed: &allowed, ..RULES }).unwrap();
        }
        // Functions that expose values of other schemas are refused only with `--schemas`.
        for other in [
            own("pg_stat_get_activity", false),
            own("pg_lock_status", true),
            of("postgis", "st_estimatedextent", false),
            of("pg_stat_statements", "pg_stat_statements", true),
        ] {
            judge(&other, RULES).unwrap();
            let fault = judge(&other, Rules { schemas_limited: true, ..RULES }).unwrap_err();
            assert!(fault.message().contains("other sessions or schemas"), "{fault}");
        }
        for name in PROTECTED_SETTINGS {
            assert!(judge(&own(name, false), Rules { protected_settings: true, ..RULES }).is_err());
        }
    }
}
