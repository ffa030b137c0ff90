//! The network falls into two parts: a primary with a worker or two, and everybody else.

use super::{Shape, World};
use crate::servers::{Divide, Sentinel};

impl World {
    /// These processes do not reach the primary any more, nor it them; everybody else does.
    pub(crate) fn cut_off(&self, server: usize, workers: Vec<u32>) {
        self.links[self.primary(server)].divide(Divide::These(workers));
    }

    /// The primary and these processes reach each other and nobody else.
    pub(crate) fn split(&self, server: usize, workers: Vec<u32>) {
        let primary = self.primary(server);
        let mut apart = workers;
        apart.extend(self.servers[primary].pid());
        for links in [&self.links, &self.buses] {
            for (index, link) in links.iter().enumerate() {
                // Those after the servers lead to sentinels, which are on the other side.
                link.divide(match index == primary {
                    true => Divide::AllBut(apart.clone()),
                    false => Divide::These(apart.clone()),
                });
            }
        }
    }

    /// Everybody reaches everybody.
    pub(crate) fn join(&self) {
        for link in self.links.iter().chain(&self.buses) {
            link.divide(Divide::Nobody);
        }
    }

    /// Which server has the part of `server` now, which may be the replica of another.
    fn primary(&self, server: usize) -> usize {
        let found = match self.shape {
            Shape::Sentinel => {
                let port = self.sentinels.iter().find_map(Sentinel::primary);
                self.links.iter().position(|link| Some(link.port()) == port)
            }
            _ => {
                let half = self.servers.len() / 2;
                let pair = [server % half, server % half + half];
                pair.into_iter().find(|index| self.is_primary(*index))
            }
        };
        found.unwrap_or(server)
    }

    fn is_primary(&self, server: usize) -> bool {
        let role = self.servers[server].command(&["ROLE"]);
        role.is_ok_and(|role| role.text().starts_with("master"))
    }
}
