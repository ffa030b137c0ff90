//! [`Verdict`]: what the sentinels said about a primary, counted.

use tenure_core::ErrorKind;

use super::super::errors::Failure;
use super::ask::View;
use super::configuration::{Configuration, Epoch};
use super::service::Service;

/// What the sentinels said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// A majority of those that the URL names and of those that the others know of.
    needed: usize,
    /// In which epoch each of those names the primary that do.
    here: Vec<Option<Epoch>>,
    /// So many name another server.
    elsewhere: usize,
    /// Whether there are more of them than the URL names.
    more: bool,
}

impl Verdict {
    /// Nobody has said anything yet.
    pub(super) fn new(service: &Service) -> Self {
        Self {
            needed: service.majority(),
            here: Vec::new(),
            elsewhere: 0,
            more: false,
        }
    }

    /// Counts what one of them says about the server at this address.
    pub(super) fn hear(&mut self, view: &View, host: &str, port: u16) {
        self.more |= view.sentinels / 2 + 1 > self.needed;
        self.needed = self.needed.max(view.sentinels / 2 + 1);
        if view.names(host, port) {
            self.here.push(view.epoch);
        } else {
            self.elsewhere += 1;
        }
    }

    /// Whether a majority names the primary, in this epoch if one is given.
    pub(super) fn confirms(&self, epoch: Option<Epoch>) -> bool {
        self.agreeing(epoch) >= self.needed
    }

    /// In which epoch a majority names the primary.
    pub(super) fn agreed(&self) -> Option<Epoch> {
        let mut told = self.here.iter().flatten();
        told.find(|epoch| self.confirms(Some(**epoch))).copied()
    }

    /// Why this is not confirmed, in words.
    pub(super) fn unconfirmed(&self, wanted: &Configuration, service: &Service) -> Failure {
        let needed = self.needed;
        let agree = self.agreeing(wanted.epoch).min(needed.saturating_sub(1));
        let why = if self.agreed().is_some() {
            "another server was the primary meanwhile"
        } else if self.here.contains(&None) {
            "some do not tell its config-epoch"
        } else if self.elsewhere > 0 {
            "some name another server"
        } else if self.here.len() >= needed {
            "they do not agree since when it is"
        } else if self.more {
            "there are more of them than the URL names: name all (if some are gone for good, SENTINEL RESET \
             makes the others forget them)"
        } else {
            "the others do not answer"
        };
        let message = format!(
            "only {agree} of the {needed} sentinels that make a majority confirm the primary of \
             `{}`: {why}",
            service.name
        );
        // Either way it has to be looked for, and met, again.
        let is_over = self.elsewhere >= needed || self.agreed().is_some();
        Failure::new(ErrorKind::Unavailable, message)
            .at(&wanted.primary)
            .ending_the_connection(is_over)
    }

    fn agreeing(&self, epoch: Option<Epoch>) -> usize {
        let agree = |it: &&Option<Epoch>| epoch.is_none() || **it == epoch;
        self.here.iter().filter(agree).count()
    }
}
