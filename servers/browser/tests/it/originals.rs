//! The tools of the published server: its texts, and where ours are better.

use crate::common::*;
use serde_json::json;

const PAGE: &str = r#"<!doctype html><title>Fixture</title>
<input id=i value=old><input id=p type=password><input id=d type=date><input id=c type=checkbox>
<textarea id=t>old</textarea><div id=e contenteditable>old</div>
<select id=s><option value=a>A<option value=b>B</select>
<button id=b onclick="this.textContent='clicked'" onmouseover="window.over=true">Press</button>
<button id=h style="display:none">hidden</button>
<script>console.log('hello', {a: 1})</script>"#;

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test --only browser"]
async fn the_seven_tools_answer_as_published_and_better_where_that_was_wrong() {
    let site = site(&[("/", HTML, PAGE.to_owned())]).await;
    let caller = Caller::of(config(&[&site])).await;
    let home = site.url("/");
    assert_eq!(caller.go(&home).await, format!("Navigated to {home}"));

    let (blocks, shot) = caller.call("puppeteer_screenshot", json!({"name": "one"})).await.unwrap();
    assert_eq!(blocks[0], "Screenshot 'one' taken at 800x600");
    assert!(blocks[1].starts_with("image/png: iVBOR"), "{}", &blocks[1][..40]);
    assert_eq!(shot["uri"], "screenshot://one");
    let small = json!({"name": "two words/é", "selector": "#b", "encoded": true});
    let (blocks, _) = caller.call("puppeteer_screenshot", small).await.unwrap();
    assert_eq!(blocks[0], "Screenshot 'two words/é' taken at 800x600");
    assert!(blocks[1].starts_with("data:image/png;base64,iVBOR"));
    let missing = json!({"name": "x", "selector": "#zz"});
    assert_eq!(caller.error("puppeteer_screenshot", missing).await, "Element not found: #zz");

    for (tool, arguments, wanted) in [
        ("puppeteer_fill", json!({"selector": "#i", "value": "new"}), "Filled #i with: new"),
        ("puppeteer_fill", json!({"selector": "#p", "value": "hidden"}), "Filled #p with: ***"),
        ("puppeteer_fill", json!({"selector": "#t", "value": "new\nline"}), "Filled #t with: new\nline"),
        ("puppeteer_fill", json!({"selector": "#e", "value": "new"}), "Filled #e with: new"),
        ("puppeteer_fill", json!({"selector": "#d", "value": "2026-11-24"}), "Filled #d with: 2026-11-24"),
        ("puppeteer_select", json!({"selector": "#s", "value": "b"}), "Selected #s with: b"),
        ("puppeteer_click", json!({"selector": "#b"}), "Clicked: #b"),
        ("puppeteer_hover", json!({"selector": "#b"}), "Hovered #b"),
    ] {
        assert_eq!(caller.text(tool, arguments).await, wanted);
    }
    let all = "[i.value, p.value, t.value, e.innerText, d.value, s.value, b.textContent, window.over]";
    let values: serde_json::Value = serde_json::from_str(&caller.eval(all).await).unwrap();
    assert_eq!(values, json!(["new", "hidden", "new\nline", "new", "2026-11-24", "b", "clicked", true]));
    caller.text("puppeteer_fill", json!({"selector": "#i", "value": ""})).await;
    assert_eq!(caller.eval("i.value").await, "\"\"");

    for (tool, arguments, wanted) in [
        (
            "puppeteer_click",
            json!({"selector": "#none"}),
            "Failed to click #none: No element found for selector: #none",
        ),
        (
            "puppeteer_click",
            json!({"selector": "#h"}),
            "Failed to click #h: Node is either not clickable or not an Element",
        ),
        ("puppeteer_click", json!({"selector": "##"}), "Failed to click ##: ## is not a valid selector"),
        ("puppeteer_fill", json!({"selector": "#c", "value": "x"}), "Failed to fill #c: It is not a text field"),
        (
            "puppeteer_select",
            json!({"selector": "#s", "value": "nope"}),
            "Failed to select #s: There is no option nope",
        ),
        ("puppeteer_evaluate", json!({"script": "return 5"}), "Script execution failed: Illegal return statement"),
        ("puppeteer_evaluate", json!({"script": "(()=>{throw new Error('x')})()"}), "Script execution failed: x"),
        (
            "puppeteer_navigate",
            json!({"url": "notaurl"}),
            "Cannot navigate to invalid URL: relative URL without a base",
        ),
        (
            "puppeteer_navigate",
            json!({"url": home, "launchOptions": {"executablePath": "/bin/true"}}),
            "launchOptions is set by the operator",
        ),
        ("puppeteer_navigate", json!({"url": home, "allowDangerous": true}), "allowDangerous is set by the operator"),
    ] {
        assert_eq!(caller.error(tool, arguments).await, wanted);
    }
    let options = caller.call("puppeteer_select", json!({"selector": "#s", "value": "nope"})).await.unwrap_err();
    assert!(options.contains(r#"["a","b"]"#), "{options}");

    for (script, wanted) in [
        ("console.log('a');console.warn('b',{x:1}); 1+1", "2\n\nConsole output:\n[log] a\n[warn] b {x: 1}"),
        ("undefined", "undefined\n\nConsole output:\n"),
        ("new Promise(r=>setTimeout(()=>r(7),50))", "7\n\nConsole output:\n"),
        ("({a: [1]})", "{\n  \"a\": [\n    1\n  ]\n}\n\nConsole output:\n"),
        ("1/0", "Infinity\n\nConsole output:\n"),
        ("'x'.repeat(3)", "\"xxx\"\n\nConsole output:\n"),
    ] {
        let text = caller.text("puppeteer_evaluate", json!({ "script": script })).await;
        assert_eq!(text, format!("Execution result:\n{wanted}"));
    }
}

#[tokio::test]
#[ignore = "needs a browser: cargo xtask test --only browser"]
async fn downloads_are_saved_where_the_operator_says_and_nowhere_else() {
    let head = "content-type: application/octet-stream\r\ncontent-disposition: attachment; filename=a.bin\r\n";
    let page = "<a id=a href=/file>file</a>".to_owned();
    let site = site(&[("/", HTML, page), ("/file", head, "some bytes".to_owned())]).await;
    let dir = tempfile::tempdir().unwrap();
    // A page cannot replace what is there.
    let (kept, saved_as) = (dir.path().join("new/a.bin"), dir.path().join("new/a (1).bin"));
    std::fs::create_dir(dir.path().join("new")).unwrap();
    std::fs::write(&kept, "the operator's").unwrap();
    let allowed = config(&[&site]).with(|config| config.download_dir = Some(dir.path().join("new")));
    for (config, is_saved) in [(config(&[&site]), false), (allowed, true)] {
        let caller = Caller::of(config).await;
        let aborted = caller.error("puppeteer_navigate", json!({"url": site.url("/file")})).await;
        assert!(aborted.starts_with("net::ERR_ABORTED at "), "{aborted}");
        caller.go(&site.url("/")).await;
        caller.text("puppeteer_click", json!({"selector": "#a"})).await;
        let saved = || std::fs::read(&saved_as).is_ok_and(|bytes| bytes == b"some bytes");
        for _ in 0..if is_saved { 250 } else { 10 } {
            if saved() {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(saved(), is_saved);
        assert_eq!(std::fs::read_to_string(&kept).unwrap(), "the operator's");
    }
}
