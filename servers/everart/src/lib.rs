//! EverArt as an MCP server.
//!
//! The tool of npm's archived `server-everart` with its arguments and text, without opening a browser: images from a
//! description. The resource lists the images of the session.
//!
//! - [`Config`]: the configuration; [`API`], [`CALLS`]: the table; [`EverArt`]: the server;
//! - `generate`: a generation from its start to its images; `images`: what images were made, and loading them; `show`: the result
//!   as text.

// This crate must not know how requests to the API are sent: that is `linchpin-rest`'s. It was written from descriptions and
// tested against doubles, never against the live service, of which it is not known whether it still answers.
//
// Files import downwards, in this order:
//
// ```text
// generate  show
// images
// ```

mod generate;
mod images;
mod show;

pub use images::Loader;

use images::{Network, Own};
use linchpin::transport::web::HostRule;
use linchpin::{Resource, Server};
use linchpin_kit::{Given, Service, ToolError, Vars, flag};
use linchpin_rest::{Api, Call, Exchange, Key, Problems, Rest, int, post, segment, specs, text};
use std::sync::Arc;

/// The tools of this server.
pub const SERVICE: Service = Service { name: "everart", tools: &specs::<{ CALLS.len() }>(CALLS) };

/// The API.
pub const API: Api = Api::new("everart", "EverArt", "https://api.everart.ai/v1", CALLS)
    .key(Key::bearer(&["EVERART_API_KEY"]).obtain("Create one at https://www.everart.ai/api."))
    .problems(
        Problems::PLAIN
            .words(&[
                (401, "Error: EverArt does not accept the key"),
                (402, "Error: EverArt requires payment first"),
                (404, "Error: EverArt knows no such model or generation"),
                (429, "Error: EverArt allows no more requests at present"),
                (0, "Error: EverArt answered with status {status} {reason}"),
            ])
            .message(&["message", "error.message", "error"]),
    )
    .authors("EverArt, and the prompt");

linchpin_kit::options! {
    /// The configuration.
    #[derive(Debug, Clone)]
    pub struct Config: "MCP_EVERART" then settle {
        /// Return the images too, not only their addresses.
        pub inline_images: bool = false => flag::switch(),
        /// Hosts that images may be loaded from, `.example.com` with those below.
        pub image_hosts: Vec<HostRule> = vec![".everart.ai".parse().expect("a host")]
            => flag::repeated_with("HOST", ',', |text| text.parse::<HostRule>().map_err(|e| ToolError::new(e.to_string())))
                .named("image-host").variable("MCP_EVERART_IMAGE_HOSTS").host().default(".everart.ai"),
        /// How the API is reached, the key, and the tools.
        pub api: linchpin_rest::Config = linchpin_rest::Config::default() => flag::group(),
    }
}

impl Config {
    fn settle(&mut self, vars: Vars<'_>, _: &Given) -> Result<(), ToolError> {
        self.api.settle_for(&API, vars)
    }
}

/// The server. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct EverArt(Rest);

impl EverArt {
    /// Opens it, without connecting.
    ///
    /// ```
    /// use linchpin::Server;
    /// use linchpin_everart::{Config, EverArt};
    /// use linchpin_kit::{Secret, ToolError};
    ///
    /// # fn example() -> Result<(), ToolError> {
    /// let config = Config::default().with(|config| config.api.key = Some(Secret::new("my key")));
    /// let server = EverArt::open(config)?.add_to(Server::new("images", "1.0"))?;
    /// assert_eq!(server.tools().names(), ["generate_image"]);
    /// # Ok(()) }
    /// # example().unwrap();
    /// ```
    ///
    /// # Errors
    /// When the configuration is invalid, or the key is missing.
    pub fn open(config: Config) -> Result<EverArt, ToolError> {
        let loader = Network::new(&config)?;
        Ok(EverArt::with(Rest::open(&API, config.api.clone())?, &config, loader))
    }

    /// The same over something else than the network, in tests: the API, and what loads images.
    ///
    /// # Errors
    /// As [`EverArt::open`].
    pub fn open_over(config: Config, api: impl Exchange, loader: impl Loader) -> Result<EverArt, ToolError> {
        Ok(EverArt::with(Rest::open_over(&API, config.api.clone(), api)?, &config, loader))
    }

    fn with(rest: Rest, config: &Config, loader: impl Loader) -> EverArt {
        let (inline, hosts) = (config.inline_images, config.image_hosts.clone());
        let loader: Arc<dyn Loader> = Arc::new(loader);
        let own = move || Own::new(inline.then(|| loader.clone()), hosts.clone());
        EverArt(rest.with_session_state(own))
    }

    /// Registers the tool and the resource on a server.
    ///
    /// # Errors
    /// When the configuration names an unknown tool.
    pub fn add_to<S: Send + Sync + 'static>(self, server: Server<S>) -> Result<Server<Rest>, ToolError> {
        let list = Resource::new(self.0.config().tools.uri("everart://images"))
            .name("Generated Images")
            .description("The images of this session and their addresses.")
            .mime_type("application/json");
        Ok(self.0.tools_on(server, &SERVICE)?.resource(list, generate::list).close())
    }
}

/// The calls.
pub const CALLS: &[Call] = &[GENERATE.run(|rest, args| Box::pin(generate::generate(rest, args)))];

pub(crate) const GENERATE: Call = post(
    "generate_image",
    "Generate image",
    "images",
    "Generates images from a description and returns their addresses. Costs money. Models: 5000 FLUX1.1, 9000 FLUX1.1-ultra (best), \
     6000 SD3.5, 7000 Recraft-Real (photos), 8000 Recraft-Vector.",
    "/models/{model}/generations",
)
.args(&[
    text("prompt").about("What the image shows."),
    segment("model").default("5000").like(generate::is_model, "the id of a model such as 5000").about("Its id."),
    int("image_count").range(1, 4).default("1").about("Number of images."),
])
.fixed(&[("type", "txt2img"), ("height", "1024"), ("width", "1024")])
.text(show::generated);
