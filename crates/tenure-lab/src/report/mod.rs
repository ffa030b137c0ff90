//! What a person sees of a play: its [`Picture`](picture::Picture), drawn on a terminal and as a page.

mod html;
mod picture;
mod svg;
mod terminal;
mod words;

pub(crate) use html::page;
pub(crate) use terminal::{show, show_line};
