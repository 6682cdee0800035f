//! Stores in several servers: a cluster, and masters that a Sentinel watches.

use super::{Server, at_last, open, put, refused, soon};
use linchpin_store::{ErrorKind, RedisOptions};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A node of a cluster.
struct Node {
    server: Server,
    port: u16,
    bus: u16,
}

impl Node {
    fn start() -> Node {
        let (port, bus) = (free_port(), free_port());
        let (own, of_bus) = (port.to_string(), bus.to_string());
        let place = ["--bind", "127.0.0.1", "--port", &own, "--cluster-port", &of_bus];
        let words = [&place[..], &["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]].concat();
        Node { server: Server::with(&words), port, bus }
    }

    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    fn ask<T: ::redis::FromRedisValue>(&self, words: &[&str]) -> T {
        self.server.ask(words)
    }
}

fn says(server: &Server, line: &str) -> bool {
    server.try_to_ask::<String>(&["INFO"]).is_ok_and(|info| info.contains(line))
}

fn follows(replica: &Server) -> bool {
    says(replica, "master_link_status:up")
}

fn is_master(server: &Server) -> bool {
    says(server, "role:master")
}

/// Waits until something is so.
async fn until(what: &str, mut is: impl FnMut() -> bool) {
    for _ in 0..1000 {
        if is() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{what}");
}

/// A cluster of masters with a third of the slots each, and a replica of the one that has the slot of the store's keys.
async fn cluster() -> (Vec<Node>, usize) {
    let nodes: Vec<Node> = (0..4).map(|_| Node::start()).collect();
    for (node, range) in nodes.iter().zip([["0", "5460"], ["5461", "10922"], ["10923", "16383"]]) {
        let _: () = node.ask(&["CLUSTER", "ADDSLOTSRANGE", range[0], range[1]]);
    }
    for node in &nodes[1..] {
        let _: () = nodes[0].ask(&["CLUSTER", "MEET", "127.0.0.1", &node.port.to_string(), &node.bus.to_string()]);
    }
    let is_ok = |node: &Node| node.ask::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
    let knows_all = |node: &Node| node.ask::<String>(&["CLUSTER", "NODES"]).lines().count() == 4;
    until("the cluster does not come up", || nodes.iter().all(|node| is_ok(node) && knows_all(node))).await;
    let slot: usize = nodes[0].ask(&["CLUSTER", "KEYSLOT", "lp:{store}:kv:"]);
    let owner = slot / 5461;
    let id: String = nodes[owner].ask(&["CLUSTER", "MYID"]);
    let _: () = nodes[3].ask(&["CLUSTER", "REPLICATE", &id]);
    until("the replica does not follow", || follows(&nodes[3].server)).await;
    (nodes, owner)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn any_node_of_a_cluster_leads_to_the_one_with_the_keys_and_to_its_successor() {
    let (nodes, owner) = cluster().await;
    let stores: Vec<_> = nodes.iter().map(|node| open(node.url())).collect();
    for (at, store) in stores.iter().enumerate() {
        assert!(put(store, &format!("a/{at}")).await.unwrap().is_stored());
        assert_eq!(store.kv().scan("a/", None, 9).await.unwrap().len(), at + 1, "all see the same");
    }
    let other = (owner + 1) % 3;
    let mut watch = stores[other].topic().watch(&["t/a"]).await.unwrap();
    stores[owner].topic().publish("t/a").await.unwrap();
    assert_eq!(soon(watch.next()).await.0, "t/a");
    let error = refused(&open(format!("{}/1", nodes[owner].url()))).await;
    assert!(error.kind() == ErrorKind::Config && error.to_string().contains("a cluster has 0 only"), "{error}");
    // Its replica takes over, and what it was is killed: also a store that knew only that one goes on.
    let _: () = nodes[3].ask(&["CLUSTER", "FAILOVER"]);
    until("the replica does not take over", || is_master(&nodes[3].server)).await;
    nodes[owner].server.kill();
    for store in &stores {
        assert!(at_last(async || put(store, "a/9").await).await.is_stored());
        assert_eq!(at_last(async || store.kv().scan("a/", None, 9).await).await.len(), 5, "nothing is lost");
    }
    stores[owner].topic().publish("t/a").await.unwrap();
    assert_eq!(soon(watch.next()).await.0, "t/a");
}

/// A process that ends with the test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Redis server: `cargo xtask test --only redis`"]
async fn a_sentinel_leads_to_the_master_and_to_its_successor() {
    let (one, two, at) = (free_port(), free_port(), free_port());
    let on = |port: u16, more: &[&str]| {
        Server::with(&[&["--bind", "127.0.0.1", "--port", &port.to_string()], more].concat())
    };
    let (master, replica) = (on(one, &[]), on(two, &["--replicaof", "127.0.0.1", &one.to_string()]));
    until("the replica does not follow", || follows(&replica)).await;
    let folder = tempfile::tempdir().unwrap();
    let watched = |name: &str| {
        format!("sentinel monitor {name} 127.0.0.1 {one} 1\nsentinel down-after-milliseconds {name} 1000\n")
    };
    let config = format!("port {at}\nbind 127.0.0.1\ndir {}\n{}", folder.path().display(), watched("mine"));
    let file = folder.path().join("sentinel.conf");
    std::fs::write(&file, config).unwrap();
    let program = std::env::var_os("LINCHPIN_REDIS_SERVER").unwrap_or_else(|| "redis-server".into());
    let mut sentinel = Command::new(program);
    sentinel.arg(&file).arg("--sentinel").stdin(Stdio::null()).stdout(Stdio::null());
    let _sentinel = Ending(sentinel.spawn().unwrap());
    until("the Sentinel does not start", || std::net::TcpStream::connect(("127.0.0.1", at)).is_ok()).await;
    let url = format!("redis://127.0.0.1:{at}/2");
    let client = ::redis::Client::open(format!("redis://127.0.0.1:{at}")).unwrap();
    let try_to = |words: &[&str]| -> Result<::redis::Value, ::redis::RedisError> {
        ::redis::cmd(words[0]).arg(&words[1..]).query(&mut client.get_connection().unwrap())
    };
    let say = |words: &[&str]| try_to(words).unwrap();
    let store = open(url.as_str());
    assert!(at_last(async || put(&store, "a/a").await).await.is_stored());
    assert!(master.ask::<String>(&["INFO"]).contains("db2:"), "in the database of the URL");
    let mut watch = store.topic().watch(&["t/a"]).await.unwrap();
    let knows_it = || format!("{:?}", say(&["SENTINEL", "REPLICAS", "mine"])).contains(&two.to_string());
    until("the Sentinel does not find the replica", knows_it).await;
    // It has to have looked at the replica.
    until("the Sentinel does not begin", || try_to(&["SENTINEL", "FAILOVER", "mine"]).is_ok()).await;
    until("the replica does not take over", || is_master(&replica)).await;
    let moved = || format!("{:?}", say(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", "mine"])).contains(&two.to_string());
    until("the Sentinel does not say so", moved).await;
    assert!(at_last(async || put(&store, "a/b").await).await.is_stored());
    assert_eq!(at_last(async || store.kv().scan("a/", None, 9).await).await.len(), 2);
    open(url.as_str()).topic().publish("t/a").await.unwrap();
    assert_eq!(soon(watch.next()).await.0, "t/a");
    // Which one is not clear any more.
    say(&["SENTINEL", "MONITOR", "theirs", "127.0.0.1", &one.to_string(), "1"]);
    let error = refused(&open(url.as_str())).await;
    assert!(error.kind() == ErrorKind::Config && error.to_string().contains("mine"), "{error}");
    let named = |name: &str| {
        let options = RedisOptions::new(url.as_str());
        open(options.with(|options| options.sentinel_master = Some(name.to_owned())))
    };
    assert!(named("mine").check().await.is_ok());
    assert!(refused(&named("nobody")).await.to_string().contains("no master nobody"));
}
