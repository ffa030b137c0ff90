//! [`Verdict`]: what the sentinels said about a primary, counted.

use tenure_core::ErrorKind;

use super::super::errors::Failure;
use super::ask::View;
use super::configuration::{Configuration, Epoch};
use super::service::Service;

/// What the sentinels said.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    /// A majority of those that the URL names and of those that the others know of.
    needed: usize,
    /// In which epoch each of those names the primary that do.
    here: Vec<Option<Epoch>>,
    /// So many name another server.
    elsewhere: usize,
    /// So many know of no such service.
    unaware: usize,
    /// Why the others did not answer, those about whom somebody can do something.
    refusals: Vec<Failure>,
    /// Whether there are more of them than the URL names.
    more: bool,
}

/// The last confirmation was asked for so long ago that nothing may be relied upon any more.
pub(super) fn outdated(wanted: &Configuration, service: &Service) -> Failure {
    let message = format!(
        "it is too long ago that a majority of the sentinels confirmed the primary of `{}`: are they running, and \
         within reach?",
        service.name
    );
    Failure::new(ErrorKind::Unavailable, message).at(&wanted.primary)
}

impl Verdict {
    /// Nobody has said anything yet.
    pub(super) fn new(service: &Service) -> Self {
        Self {
            needed: service.majority(),
            here: Vec::new(),
            elsewhere: 0,
            unaware: 0,
            refusals: Vec::new(),
            more: false,
        }
    }

    /// Counts what one of them says about the server at this address.
    pub(super) fn hear(&mut self, view: &View, host: &str, port: u16) {
        self.more |= view.sentinels / 2 + 1 > self.needed;
        self.needed = self.needed.max(view.sentinels / 2 + 1);
        if view.names(host, port) {
            self.here.push(view.epoch);
        } else if view.primary.is_some() {
            self.elsewhere += 1;
        } else {
            self.unaware += 1;
        }
    }

    /// One of them did not answer, or not what was asked.
    pub(super) fn miss(&mut self, failure: Failure) {
        if failure.kind != ErrorKind::Unavailable {
            self.refusals.push(failure);
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

    /// Why this is not confirmed, and what can be done about it, in words.
    pub(super) fn unconfirmed(&self, wanted: &Configuration, service: &Service) -> Failure {
        let needed = self.needed;
        let heard = self.here.len() + self.elsewhere + self.unaware;
        if let Some(refusal) = service.refusal(&self.refusals).filter(|_| heard == 0) {
            return refusal.clone();
        }
        let agree = self.agreeing(wanted.epoch).min(needed.saturating_sub(1));
        let message = format!(
            "only {agree} of the {needed} sentinels that make a majority confirm the primary of \
             `{}`: {}",
            service.name,
            self.why()
        );
        // Either way it has to be looked for, and met, again.
        let is_over = self.elsewhere + self.unaware >= needed || self.agreed().is_some();
        Failure::new(ErrorKind::Unavailable, message)
            .at(&wanted.primary)
            .ending_the_connection(is_over)
    }

    fn why(&self) -> String {
        let why = if self.agreed().is_some() {
            "another server was the primary meanwhile"
        } else if self.here.contains(&None) {
            "some do not tell its config-epoch, as every sentinel does since Redis 2.8: upgrade them"
        } else if self.elsewhere > 0 {
            "some name another server: a failover is under way, or they have not heard of one (compare what SENTINEL \
             MASTER says at each)"
        } else if self.unaware > 0 {
            "some know of no such service: have them watch over it (SENTINEL MONITOR), or take them out of the URL"
        } else if let Some(refusal) = self.refusals.first() {
            return format!("one of them refuses to answer: {}", refusal.error());
        } else if self.here.len() >= self.needed {
            "they do not agree since when it is: some have not heard of a failover yet (compare the config-epoch that \
             SENTINEL MASTER says at each)"
        } else if self.more {
            "there are more of them than the URL names: name all (if some are gone for good, SENTINEL RESET \
             makes the others forget them)"
        } else {
            "the others do not answer: are they running, and within reach?"
        };
        why.to_owned()
    }

    fn agreeing(&self, epoch: Option<Epoch>) -> usize {
        let agree = |it: &&Option<Epoch>| epoch.is_none() || **it == epoch;
        self.here.iter().filter(agree).count()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::options::{Address, Options};
    use super::*;

    #[test]
    fn who_refuses_ends_no_wait_as_long_as_the_others_may_be_enough() {
        let options = Options::parse("redis+sentinel://a,b,c/service").expect("a URL");
        let Address::Service(service) = options.address else {
            unreachable!("it names a service");
        };
        let wanted = Configuration {
            primary: Address::Tcp {
                host: "primary".to_owned(),
                port: 6379,
            },
            epoch: None,
        };
        let mut verdict = Verdict::new(&service);
        for kind in [ErrorKind::Unavailable, ErrorKind::Forbidden] {
            verdict.miss(Failure::new(ErrorKind::Forbidden, "no"));
            let failure = verdict.unconfirmed(&wanted, &service);
            assert_eq!(failure.kind, kind, "{}", failure.error());
        }
    }
}
