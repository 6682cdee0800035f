//! The result as text: the published one without the browser.

use serde_json::Value;

pub(crate) fn generated(result: &Value) -> String {
    let word = |name: &str| result[name].as_str().unwrap_or_default();
    let mut out = format!(
        "Image generated successfully!\n\nGeneration details:\n- Model: {}\n- Prompt: \"{}\"\n",
        word("model"),
        word("prompt")
    );
    for image in result["images"].as_array().into_iter().flatten() {
        match image["url"].as_str() {
            Some(url) => out.push_str(&format!("- Image URL: {url}\n")),
            None => out.push_str(&format!("- No image: {}\n", image["status"].as_str().unwrap_or_default())),
        }
    }
    out.push_str("\nYou can also click the URL above to view the image again.");
    out
}
