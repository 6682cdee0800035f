//! Which server has the keys of a store: the one of its URL, the node of a cluster that has their slot, or the master
//! that a Sentinel names.

use super::failure::Failure;
use super::start::{Info, RedisOptions, check, refused};
use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, Value, cmd};

/// The most servers that are remembered beside the one of the URL.
const SEEDS_MAX: usize = 32;
/// How many servers send on to another.
const HOPS_MAX: usize = 3;

/// Servers that know where the keys are: that of the URL, and others that were learned from them, in the order in which
/// they are asked.
pub(super) struct Places {
    /// Without the database, which Sentinels do not have.
    info: ConnectionInfo,
    database: i64,
    /// The one that knew last comes first.
    seeds: Vec<ConnectionAddr>,
}

/// What a server says about the keys.
enum Keys {
    Here,
    At(ConnectionAddr),
}

impl Places {
    pub(super) fn new(info: ConnectionInfo) -> Places {
        let settings = info.redis_settings().clone();
        let database = settings.db();
        Places { seeds: vec![info.addr().clone()], info: info.set_redis_settings(settings.set_db(0)), database }
    }

    /// Connects to the server that has the keys, and checks it.
    pub(super) async fn connect(
        &mut self,
        config: &AsyncConnectionConfig,
        options: &RedisOptions,
        key: &str,
    ) -> Result<MultiplexedConnection, Failure> {
        let mut failed = None;
        for at in 0..self.seeds.len() {
            match self.through(self.seeds[at].clone(), config, options, key).await {
                Ok(connection) => {
                    self.seeds[..=at].rotate_right(1);
                    return Ok(connection);
                }
                Err(failure) if !failure.again => return Err(failure),
                // What the first one says is said.
                Err(failure) => drop(failed.get_or_insert(failure)),
            }
        }
        Err(failed.unwrap_or_else(|| Failure::away("there is no server")))
    }

    /// Goes where a server sends it.
    async fn through(
        &mut self,
        seed: ConnectionAddr,
        config: &AsyncConnectionConfig,
        options: &RedisOptions,
        key: &str,
    ) -> Result<MultiplexedConnection, Failure> {
        let mut at = seed;
        for _ in 0..HOPS_MAX {
            let client = Client::open(self.info.clone().set_addr(at.clone()))?;
            let mut connection = client.get_multiplexed_async_connection_with_config(config).await?;
            let info = Info::of(&mut connection).await?;
            let keys = match info.said("redis_mode") {
                Some("sentinel") => self.of_sentinel(&info, &at, &mut connection, options).await?,
                Some("cluster") => self.of_cluster(&at, &mut connection, key).await?,
                _ => Keys::Here,
            };
            match keys {
                Keys::At(next) => at = next,
                Keys::Here => {
                    check(&info, options)?;
                    if self.database != 0 {
                        let () = cmd("SELECT").arg(self.database).query_async(&mut connection).await?;
                    }
                    return Ok(connection);
                }
            }
        }
        Err(Failure::away("its servers send to one another"))
    }

    /// The master that a Sentinel names, and the other Sentinels.
    async fn of_sentinel(
        &mut self,
        info: &Info,
        at: &ConnectionAddr,
        connection: &mut MultiplexedConnection,
        options: &RedisOptions,
    ) -> Result<Keys, Failure> {
        let masters: Vec<(&str, &str)> = info.masters().collect();
        let (name, address) = match (&options.sentinel_master, masters.as_slice()) {
            (Some(wanted), all) => *all
                .iter()
                .find(|(name, _)| name == wanted)
                .ok_or_else(|| refused(format!("the Sentinel watches no master {wanted}, but {}", names(&masters))))?,
            (None, [one]) => *one,
            (None, []) => return Err(refused("the Sentinel watches no master".to_owned())),
            (None, _) => {
                return Err(refused(format!("the Sentinel watches several masters: say which of {}", names(&masters))));
            }
        };
        let others: Vec<Vec<(String, String)>> = {
            let found: Value = cmd("SENTINEL").arg("SENTINELS").arg(name).query_async(connection).await?;
            ::redis::from_redis_value(found).unwrap_or_default()
        };
        for other in others {
            let said = |name: &str| other.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
            if let (Some(host), Some(Ok(port))) = (said("ip"), said("port").map(str::parse)) {
                self.remember(place(at, host, port));
            }
        }
        let (host, port) = address
            .rsplit_once(':')
            .and_then(|(host, port)| Some((host, port.parse().ok()?)))
            .ok_or_else(|| Failure::away("the Sentinel knows no address of its master"))?;
        Ok(Keys::At(place(at, host, port)))
    }

    /// The node of a cluster that has the slot of the keys, and the other nodes.
    async fn of_cluster(
        &mut self,
        at: &ConnectionAddr,
        connection: &mut MultiplexedConnection,
        key: &str,
    ) -> Result<Keys, Failure> {
        let slot: u64 = cmd("CLUSTER").arg("KEYSLOT").arg(key).query_async(connection).await?;
        let own: String = cmd("CLUSTER").arg("MYID").query_async(connection).await?;
        let ranges: Vec<Vec<Value>> = cmd("CLUSTER").arg("SLOTS").query_async(connection).await?;
        let mut found = None;
        for range in ranges {
            let mut parts = range.into_iter();
            let (Some(Value::Int(first)), Some(Value::Int(last))) = (parts.next(), parts.next()) else { continue };
            let has = (first.unsigned_abs()..=last.unsigned_abs()).contains(&slot);
            // The first of its nodes is the master.
            for (rank, node) in parts.filter_map(node).enumerate() {
                // Without a name it is the one that says so.
                let next = match node.host.as_deref() {
                    Some(host) if host != "?" => place(at, host, node.port),
                    _ => with_port(at, node.port),
                };
                self.remember(next.clone());
                if has && rank == 0 {
                    found = Some(if node.id == own { Keys::Here } else { Keys::At(next) });
                }
            }
        }
        found.ok_or_else(|| Failure::away("no node of the cluster has the slot of the store's keys"))
    }

    fn remember(&mut self, seed: ConnectionAddr) {
        if self.seeds.len() <= SEEDS_MAX && !self.seeds.contains(&seed) {
            self.seeds.push(seed);
        }
    }
}

fn names(masters: &[(&str, &str)]) -> String {
    masters.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")
}

/// A node as `CLUSTER SLOTS` has it.
struct Node {
    host: Option<String>,
    port: u16,
    id: String,
}

fn node(value: Value) -> Option<Node> {
    let Value::Array(parts) = value else { return None };
    let mut parts = parts.into_iter();
    let (host, port, id) = (parts.next()?, parts.next()?, parts.next()?);
    let host: Option<String> = ::redis::from_redis_value(host).ok()?;
    Some(Node {
        host: host.filter(|host| !host.is_empty()),
        port: ::redis::from_redis_value(port).ok()?,
        id: ::redis::from_redis_value(id).ok()?,
    })
}

/// Another server, which is reached in the same way.
fn place(like: &ConnectionAddr, to: &str, at: u16) -> ConnectionAddr {
    match like {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => ConnectionAddr::TcpTls {
            host: to.to_owned(),
            port: at,
            insecure: *insecure,
            tls_params: tls_params.clone(),
        },
        _ => ConnectionAddr::Tcp(to.to_owned(), at),
    }
}

fn with_port(like: &ConnectionAddr, at: u16) -> ConnectionAddr {
    match like {
        ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. } => place(like, host, at),
        _ => like.clone(),
    }
}
