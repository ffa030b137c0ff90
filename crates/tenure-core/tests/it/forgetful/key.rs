//! What tells one state of everything from another.

use tenure_core::Fence;

use super::client::{Ask, Stage, client_of};
use super::server::Data;
use super::world::World;

impl World {
    /// All that tells this state from others, as bytes.
    pub(super) fn key(&self) -> Box<[u8]> {
        let mut key = vec![self.now, self.left.faults, self.left.late, self.left.clocks];
        let server = &self.server;
        key.extend([server.run, server.started, server.lives, server.ahead]);
        key.push(
            u8::from(server.took_over)
                | u8::from(server.wiped) << 1
                | u8::from(server.greeted) << 2
                | self.left.kept << 3,
        );
        write_data(&mut key, &server.data);
        key.push(u8::try_from(server.earlier.len()).unwrap_or(u8::MAX));
        if self.left.faults > 0 {
            server
                .earlier
                .iter()
                .for_each(|data| write_data(&mut key, data));
        }
        for client in &self.clients {
            key.extend([client.renewals, client.asked]);
            match client.stage {
                Stage::Idle => key.push(0),
                Stage::Asked => key.push(1),
                Stage::Done => key.push(2),
                Stage::Holds { fence, until } => {
                    key.extend([3, until]);
                    write_fence(&mut key, fence);
                }
                Stage::Lost { fence } => {
                    key.push(4);
                    write_fence(&mut key, fence);
                }
            }
        }
        for message in &self.late {
            key.extend([message.from, short(message.life), message.sent]);
            match message.ask {
                Ask::Acquire => key.push(1),
                Ask::Renew(fence) => {
                    key.push(2);
                    write_fence(&mut key, fence);
                }
                Ask::Release(fence) => {
                    key.push(3);
                    write_fence(&mut key, fence);
                }
            }
        }
        write_fence(&mut key, self.highest);
        key.into()
    }
}

fn short(life: tenure_core::Life) -> u8 {
    let text = life.to_string();
    u8::from_str_radix(&text[14..], 16).unwrap_or(u8::MAX)
}

fn write_fence(key: &mut Vec<u8>, fence: Fence) {
    key.extend(fence.as_u64().to_le_bytes());
}

fn write_data(key: &mut Vec<u8>, data: &Data) {
    let Data { lock, record } = data;
    write_fence(key, lock.last_fence);
    key.push(u8::try_from(lock.holders.len()).unwrap_or(u8::MAX));
    for holder in &lock.holders {
        key.push(client_of(holder.owner));
        write_fence(key, holder.fence);
        key.extend(holder.expiry.as_micros().to_le_bytes());
    }
    key.push(u8::try_from(lock.queue.len()).unwrap_or(u8::MAX));
    for waiter in &lock.queue {
        key.push(client_of(waiter.owner));
        key.extend(waiter.alive_until.as_micros().to_le_bytes());
    }
    match record {
        None => key.push(0),
        Some(record) => {
            key.extend([short(record.life), u8::from(record.durable)]);
            key.extend(record.run.bytes());
            key.extend(record.until.as_micros().to_le_bytes());
        }
    }
}
