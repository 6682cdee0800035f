//! What a user does on a page: click, type, choose, drag. By references of snapshots, with checks before and real
//! events.
//!
//! - `actor`: the actions;
//! - `settle`: waits until an action has had its effect;
//! - `tab`: a tab's frames and snapshots, and finding elements again;
//! - `element`: one element, checked before it is used;
//! - `input`, `keys`: pointer and keyboard.

mod actor;
mod element;
mod input;
mod keys;
mod settle;
mod tab;

pub(crate) use actor::{Action, Actor, Field, FieldKind};
pub(crate) use element::{Needs, failed};
pub(crate) use input::Button;
pub(crate) use keys::{key, modifier};
pub(crate) use settle::{Download, Watch, unless_dialog};
pub(crate) use tab::{Tab, Tabs, dialog_open, reference};
