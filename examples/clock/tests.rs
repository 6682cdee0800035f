use super::*;

use serde_json::json;

#[tokio::test]
async fn the_face_is_for_hosts_that_show_pages() {
    let pages = json!({ "mimeTypes": ["text/html;profile=mcp-app"] });
    let host = Client::new("host", "1.0");
    for (host, tools) in
        [(host.clone().extension("io.modelcontextprotocol/ui", &pages), vec!["now", "tick"]), (host, vec!["now"])]
    {
        let connection = host.connect(in_process(server())).await.unwrap();
        let listed = connection.tools().await.unwrap();
        assert_eq!(listed.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), tools);
        assert_eq!(listed[0].meta.is_some(), tools.len() == 2);
        assert_eq!(connection.call("now", ()).await.unwrap().text().len(), r#"{"time":"12:00:00"}"#.len());
    }
}
