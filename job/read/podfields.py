"""The fields of a pod template that Kubernetes knows, as far down as users' misspellings go.

Only for warnings: a field that is not here is kept all the same, and the API server has the last word. A dict describes
a mapping, a list of one dict a list of mappings; None is anything.
"""

from __future__ import annotations

Shape = dict[str, "Shape"] | list["Shape"] | None


def names(text: str) -> dict[str, Shape]:
    """The names in a text, each holding anything."""
    return dict.fromkeys(text.split())


ENV_VAR: Shape = {
    "name": None,
    "value": None,
    "valueFrom": names("configMapKeyRef fieldRef fileKeyRef resourceFieldRef secretKeyRef"),
}

PROBE: Shape = names(
    "exec failureThreshold grpc httpGet initialDelaySeconds periodSeconds successThreshold tcpSocket"
    " terminationGracePeriodSeconds timeoutSeconds"
)

CONTAINER: dict[str, Shape] = {
    **names(
        "args command image imagePullPolicy name resizePolicy restartPolicy restartPolicyRules stdin stdinOnce"
        " targetContainerName terminationMessagePath terminationMessagePolicy tty workingDir"
    ),
    "env": [ENV_VAR],
    "envFrom": [names("configMapRef prefix secretRef")],
    "lifecycle": names("postStart preStop stopSignal"),
    "livenessProbe": PROBE,
    "ports": [names("containerPort hostIP hostPort name protocol")],
    "readinessProbe": PROBE,
    "resources": names("claims limits requests"),
    "securityContext": names(
        "allowPrivilegeEscalation appArmorProfile capabilities privileged procMount readOnlyRootFilesystem runAsGroup"
        " runAsNonRoot runAsUser seLinuxOptions seccompProfile windowsOptions"
    ),
    "startupProbe": PROBE,
    "volumeDevices": [names("devicePath name")],
    "volumeMounts": [names("mountPath mountPropagation name readOnly recursiveReadOnly subPath subPathExpr")],
}

VOLUME: Shape = names(
    "awsElasticBlockStore azureDisk azureFile cephfs cinder configMap csi downwardAPI emptyDir ephemeral fc flexVolume"
    " flocker gcePersistentDisk gitRepo glusterfs hostPath image iscsi name nfs persistentVolumeClaim"
    " photonPersistentDisk portworxVolume projected quobyte rbd scaleIO secret storageos vsphereVolume"
)

POD_SPEC: Shape = {
    **names(
        "activeDeadlineSeconds automountServiceAccountToken dnsPolicy enableServiceLinks hostIPC hostNetwork hostPID"
        " hostUsers hostname hostnameOverride nodeName nodeSelector os overhead preemptionPolicy priority"
        " priorityClassName resources restartPolicy runtimeClassName schedulerName serviceAccount serviceAccountName"
        " setHostnameAsFQDN shareProcessNamespace subdomain terminationGracePeriodSeconds workloadRef"
    ),
    "affinity": names("nodeAffinity podAffinity podAntiAffinity"),
    "containers": [CONTAINER],
    "dnsConfig": names("nameservers options searches"),
    "ephemeralContainers": [CONTAINER],
    "hostAliases": [names("hostnames ip")],
    "imagePullSecrets": [names("name")],
    "initContainers": [CONTAINER],
    "readinessGates": [names("conditionType")],
    "resourceClaims": [names("name resourceClaimName resourceClaimTemplateName")],
    "schedulingGates": [names("name")],
    "securityContext": names(
        "appArmorProfile fsGroup fsGroupChangePolicy runAsGroup runAsNonRoot runAsUser seLinuxChangePolicy"
        " seLinuxOptions seccompProfile supplementalGroups supplementalGroupsPolicy sysctls windowsOptions"
    ),
    "tolerations": [names("effect key operator tolerationSeconds value")],
    "topologySpreadConstraints": [
        names(
            "labelSelector matchLabelKeys maxSkew minDomains nodeAffinityPolicy nodeTaintsPolicy topologyKey"
            " whenUnsatisfiable"
        )
    ],
    "volumes": [VOLUME],
}

METADATA: Shape = names(
    "annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers generateName generation"
    " labels managedFields name namespace ownerReferences resourceVersion selfLink uid"
)

POD_TEMPLATE: Shape = {"metadata": METADATA, "spec": POD_SPEC}
