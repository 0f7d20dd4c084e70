//! What does turning a knob do?

use jiff::SignedDuration;

use crate::{knob::Knob, world::World};

impl World {
    /// Turns a knob; an error says what of it makes no sense.
    pub(crate) fn turn(&mut self, knob: Knob) -> Result<(), String> {
        let now = self.now();
        self.settle(now);
        match knob {
            Knob::Fault(fault) => self.faults.add(fault),
            Knob::Stock(rules) => self.stock = rules,
            Knob::Quota(quota) => self.limits.set(&quota),
            Knob::Throttle(throttle) => self.faults.limit(throttle),
            Knob::Graph(graph) => self.graph.turn(&graph, now),
            Knob::Latency(latency) => self.latencies.push(latency),
            Knob::Style(style) => self.styles.push(style),
            Knob::Clock(advance) => self.ahead += SignedDuration::from_secs(advance.advance_seconds),
            Knob::Token(rule) => self.tokens.turn(&rule),
            Knob::Sku(change) => self.catalogue.change(&change)?,
            Knob::Subnet(room) => self.set_room(&room)?,
            Knob::Pool(pool) => self.network.set_pool(&pool),
            Knob::Evict(evict) => self.announce(&evict, now)?,
            Knob::Vanish(vanish) => self.vanish(&vanish.vm)?,
            Knob::Plant(plant) => self.plant(&plant, now),
            Knob::Page(page) => self.pages.push(page),
            Knob::Image(image) => self.gallery.publish(&image)?,
            Knob::Machine(drift) => self.set_drift(&drift)?,
            Knob::Role(role) => self.role = Some(role),
            Knob::Price(price) => self.prices.set(&price)?,
            Knob::Reset(_) => self.calm(),
        }
        self.settle(self.now());
        Ok(())
    }

    fn vanish(&mut self, name: &str) -> Result<(), String> {
        let found = self.vms.iter().find(|(_, vm)| vm.name.eq_ignore_ascii_case(name));
        let key = found.map(|(key, _)| key.clone());
        let key = key.ok_or_else(|| format!("no virtual machine is called `{name}`"))?;
        self.remove_vm(&key);
        Ok(())
    }

    /// Takes back whatever makes the double difficult.
    fn calm(&mut self) {
        self.faults = crate::fault::Faults::default();
        self.stock.clear();
        self.latencies.clear();
        self.styles.clear();
        self.pages.clear();
        self.role = None;
    }
}
