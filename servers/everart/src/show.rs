//! The result as text: the published one without the browser.

use crate::images::is_over;
use serde_json::Value;

pub(crate) fn generated(result: &Value) -> String {
    let word = |name: &str| result[name].as_str().unwrap_or_default();
    let mut out = format!(
        "Image generated successfully!\n\nGeneration details:\n- Model: {}\n- Prompt: \"{}\"\n",
        word("model"),
        word("prompt")
    );
    let mut later = "";
    for image in result["images"].as_array().into_iter().flatten() {
        let status = image["status"].as_str().unwrap_or_default();
        match image["url"].as_str() {
            Some(url) => out.push_str(&format!("- Image URL: {url}\n")),
            None if is_over(status) => out.push_str(&format!("- No image: {status}\n")),
            None => {
                let id = image["id"].as_str().unwrap_or_default();
                out.push_str(&format!("- Not finished: {status} (generation {id})\n"));
                later = "\nWhat is not finished costs money too: read the resource everart://images later.\n";
            }
        }
    }
    out.push_str(later);
    out.push_str("\nYou can also click the URL above to view the image again.");
    out
}
