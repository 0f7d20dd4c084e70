//! Which extensions do virtual machines have?

use serde_json::{Value, json};

use crate::{
    answer::{Answer, Refusal},
    operation::End,
    request::{Asked, check_tags},
    vm::Stage,
    world::World,
};

const KIND: &str = "Microsoft.Compute/virtualMachines/extensions";

pub(crate) struct Extension {
    /// As it is shown: without protected settings.
    pub(crate) json: Value,
}

impl World {
    fn extension_key(asked: &Asked<'_>) -> String {
        format!("{}/{}", asked.key("vm"), asked.name("extension").to_ascii_lowercase())
    }

    fn missing(asked: &Asked<'_>) -> Refusal {
        let name = format!("{}/{}", asked.name("vm"), asked.name("extension"));
        Refusal::not_found(KIND, &name, asked.name("group"))
    }

    pub(crate) fn put_extension(&mut self, asked: &Asked<'_>, group: &str) -> Result<Answer, Refusal> {
        let Some(vm) = self.vms.get(&asked.key("vm")) else {
            let message = format!(
                "Can not perform requested operation on nested resource. Parent resource '{}' not found.",
                asked.name("vm")
            );
            return Err(Refusal::new(404, "ParentResourceNotFound", message));
        };
        if !matches!(vm.stage, Stage::Succeeded | Stage::Updating) || vm.is_deallocated {
            let message = "Cannot modify extensions in the VM when the VM is not running.";
            return Err(Refusal::new(409, "OperationNotAllowed", message));
        }
        self.in_region(asked.body["location"].as_str().unwrap_or_default())?;
        check_tags(&asked.body["tags"])?;
        let name = asked.name("extension");
        let parent = self.setup.compute_id(group, "virtualMachines", asked.name("vm"));
        let mut shown = asked.body.clone();
        shown["id"] = json!(format!("{parent}/extensions/{name}"));
        shown["name"] = json!(name);
        shown["type"] = json!(KIND);
        shown["properties"]["provisioningState"] = json!("Creating");
        if let Some(properties) = shown["properties"].as_object_mut() {
            properties.remove("protectedSettings");
        }
        let key = Self::extension_key(asked);
        let status = if self.extensions.contains_key(&key) { 200 } else { 201 };
        self.extensions.insert(key.clone(), Extension { json: shown.clone() });
        let answer = Answer::new(status, shown);
        Ok(self.begin(asked, End::ExtensionReady(key), asked.doom.clone(), answer))
    }

    pub(crate) fn patch_extension(&mut self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        check_tags(&asked.body["tags"])?;
        let key = Self::extension_key(asked);
        let extension = self.extensions.get_mut(&key).ok_or_else(|| Self::missing(asked))?;
        if asked.body["tags"].is_object() {
            extension.json["tags"] = asked.body["tags"].clone();
        }
        let answer = Answer::ok(extension.json.clone());
        Ok(self.begin(asked, End::ExtensionReady(key), asked.doom.clone(), answer))
    }

    pub(crate) fn get_extension(&self, asked: &Asked<'_>) -> Result<Answer, Refusal> {
        let found = self.extensions.get(&Self::extension_key(asked));
        let found = found.ok_or_else(|| Self::missing(asked))?;
        Ok(Answer::ok(found.json.clone()))
    }

    pub(crate) fn delete_extension(&mut self, asked: &Asked<'_>) -> Answer {
        let key = Self::extension_key(asked);
        if !self.extensions.contains_key(&key) {
            return Answer::empty(204);
        }
        self.begin(asked, End::ExtensionGone(key), asked.doom.clone(), Answer::empty(202))
    }

    pub(crate) fn extension_ready(&mut self, key: &str, is_failed: bool) {
        if let Some(extension) = self.extensions.get_mut(key) {
            let state = if is_failed { "Failed" } else { "Succeeded" };
            extension.json["properties"]["provisioningState"] = json!(state);
        }
    }
}
