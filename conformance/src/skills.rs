//! Skills, with directories inside of directories.

use linchpin::skills::Skills;

/// The skills that the suite lists, gets and reads.
pub(crate) fn skills() -> Skills {
    let pdf = "---\nname: pdf-processing\ndescription: Extracts, fills and assembles PDF documents.\nlicense: Apache-2.0\n---\n\n\
               # PDF\n\nRead references/FORMS.md before filling a form.\n";
    let refunds =
        "---\nname: refunds\ndescription: Refunds a customer by the rules of the company.\n---\n\n# Refunds\n";
    Skills::embedded([
        ("pdf-processing/SKILL.md", pdf),
        ("pdf-processing/references/FORMS.md", "# Forms\n"),
        ("acme/billing/refunds/SKILL.md", refunds),
        ("acme/billing/refunds/examples/email.md", "Dear customer\n"),
    ])
    .directories(true)
}
